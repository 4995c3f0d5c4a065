"""Folders of jobs on a cluster, and of their shards."""

from flowcompute.distributed.kept.cluster_folder import (
    ANY_DEVICE,
    COMMIT,
    JOB,
    ClusterFolder,
    check_owner,
    is_done,
    is_mixed,
    kept_items,
    read_job,
)
from flowcompute.distributed.kept.shard_folder import ShardFolder, TakenOverError

__all__ = [
    "ANY_DEVICE",
    "COMMIT",
    "JOB",
    "ClusterFolder",
    "ShardFolder",
    "TakenOverError",
    "check_owner",
    "is_done",
    "is_mixed",
    "kept_items",
    "read_job",
]
