"""Names of drafts, the temporary files beside their targets; what a name proves, and what it does not."""

from __future__ import annotations

import os
import re

from flowcompute.files.file_layer import temporary_path

_RANDOM = "[0-9a-f]{16}"
"""The token of a draft that belongs to no checkpoint; see `Files.create_temporary`."""


def is_draft_of(path: object, target: str, token: str) -> bool:
    """Check whether a path is the one that a job's draft of this target has.

    Args:
        path: what a checkpoint says, of any type.
        target: absolute path of the file that the job makes.
        token: the token of the job's drafts of it. A run that was frozen without a checkpoint of its own may have left
            a draft with a random token. That is a draft of the target too.
    """
    if not isinstance(path, str):
        return False
    if path == temporary_path(target, token):
        return True
    before, after = temporary_path(target, "\0").split("\0")
    return re.fullmatch(re.escape(before) + _RANDOM + re.escape(after), path) is not None


def may_be_draft_of(path: object, target: str) -> bool:
    """Check whether a path is one that a draft of this target can have, of whatever job.

    Args:
        path: what another process says, of any type.
        target: absolute path of the file or folder that the job makes.
    """
    before, after = (re.escape(part) for part in temporary_path(target, "\0").split("\0"))
    return isinstance(path, str) and re.fullmatch(f"{before}{_RANDOM}(-[0-9]+)?{after}", path) is not None


def lies_in(path: str, folders: tuple[str, ...]) -> bool:
    """Check whether a file lies in one of these folders or below, wherever links lead. Its own name is no link."""
    parent = os.path.realpath(os.path.dirname(path))
    return any(os.path.commonpath([parent, os.path.realpath(folder)]) == os.path.realpath(folder) for folder in folders)
