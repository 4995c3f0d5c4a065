"""Frozen jobs: a job as data, and the folder that keeps it. Nothing here drives a run."""

from flowcompute.checkpoint.store import (
    Blob,
    CheckpointFolder,
    Generation,
    GenerationStatus,
    SideFile,
    SideMark,
    absolute_path,
)

__all__ = ["Blob", "CheckpointFolder", "Generation", "GenerationStatus", "SideFile", "SideMark", "absolute_path"]
