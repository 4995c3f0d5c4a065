"""Checkpoint files on disk: generations, side files, and a commit that is one atomic step."""

from flowcompute.checkpoint.store.cluster_job import CLUSTER_JOB, keeps_cluster_job
from flowcompute.checkpoint.store.contents import Generation, GenerationStatus
from flowcompute.checkpoint.store.folder import CheckpointFolder, absolute_path
from flowcompute.checkpoint.store.message import pack, unpack
from flowcompute.checkpoint.store.side_files import SideFile
from flowcompute.checkpoint.store.values import DTYPES, Blob, SideMark, blob_of

__all__ = [
    "CLUSTER_JOB",
    "DTYPES",
    "Blob",
    "CheckpointFolder",
    "Generation",
    "GenerationStatus",
    "SideFile",
    "SideMark",
    "absolute_path",
    "blob_of",
    "keeps_cluster_job",
    "pack",
    "unpack",
]
