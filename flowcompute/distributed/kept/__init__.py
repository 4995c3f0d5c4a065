"""Folders of jobs on a cluster, and of their shards."""

from flowcompute.distributed.kept.cluster_folder import COMMIT, JOB, ClusterFolder, is_done, kept_items, read_job
from flowcompute.distributed.kept.shard_folder import ShardFolder

__all__ = ["COMMIT", "JOB", "ClusterFolder", "ShardFolder", "is_done", "kept_items", "read_job"]
