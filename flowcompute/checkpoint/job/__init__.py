"""The job as data: what a checkpoint holds of a graph, and what comes of it. Knows nothing of folders and runs."""

from flowcompute.checkpoint.job.describe import describe_job
from flowcompute.checkpoint.job.difference import check_sources, differences
from flowcompute.checkpoint.job.drafts import check_drafts
from flowcompute.checkpoint.job.fields import UNSOUND
from flowcompute.checkpoint.job.fingerprint import MovedWeights, weight_paths
from flowcompute.checkpoint.job.kept import KeptJob, read_progress
from flowcompute.checkpoint.job.not_bound import NEVER_CALLED
from flowcompute.checkpoint.job.other_operands import made_again
from flowcompute.checkpoint.job.rebuild import rebuild_job
from flowcompute.checkpoint.job.words import JobWords
from flowcompute.checkpoint.job.writes import Write, find_writes

__all__ = [
    "NEVER_CALLED",
    "UNSOUND",
    "JobWords",
    "KeptJob",
    "MovedWeights",
    "Write",
    "check_drafts",
    "check_sources",
    "describe_job",
    "differences",
    "find_writes",
    "made_again",
    "read_progress",
    "rebuild_job",
    "weight_paths",
]
