"""Frozen jobs: the job as data, and the folder that it is kept in. Nothing here drives a run."""

from flowcompute.checkpoint.contents import Generation, GenerationStatus
from flowcompute.checkpoint.folder import CheckpointFolder, absolute_path
from flowcompute.checkpoint.side import SideFile
from flowcompute.checkpoint.values import Blob, SideMark

__all__ = ["Blob", "CheckpointFolder", "Generation", "GenerationStatus", "SideFile", "SideMark", "absolute_path"]
