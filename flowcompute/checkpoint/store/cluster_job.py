"""Folders that keep a job of a cluster. They hold no generations, and are laid out by the room of clusters."""

from __future__ import annotations

import os

from flowcompute.files import FILES, Files, path_text

CLUSTER_JOB = "CLUSTER"
"""The file that describes the job."""


def keeps_cluster_job(path: object, files: Files = FILES) -> bool:
    """Check whether a job of a cluster is kept at a path; False for what is no path."""
    try:
        files.lstat(os.path.join(path_text(path), CLUSTER_JOB))  # type: ignore[arg-type]
    except (OSError, ValueError, TypeError):
        return False
    return True
