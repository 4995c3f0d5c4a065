"""The job as data: what a checkpoint holds of a graph, and what comes of it. Knows nothing of folders and runs."""

from flowcompute.checkpoint.describe import describe_job
from flowcompute.checkpoint.difference import check_sources, differences
from flowcompute.checkpoint.rebuild import rebuild_job

__all__ = ["check_sources", "describe_job", "differences", "rebuild_job"]
