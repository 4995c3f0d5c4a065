"""Shards of one job: the same plan over ranges of its records, whose fold states merge to the bits of the whole."""

from flowcompute.distributed.cluster import ClusterRun, ClusterShards, run_on_cluster
from flowcompute.distributed.kept import is_done, kept_items, read_job
from flowcompute.distributed.shard_answer import answer
from flowcompute.distributed.shard_job import ShardedJob
from flowcompute.distributed.shard_message import ShardMessages, kept_graph, kept_options
from flowcompute.distributed.shard_ranges import shard_ranges
from flowcompute.distributed.shard_runner import run_shard
from flowcompute.distributed.shard_start import ShardProgress, ShardStart, ShardState
from flowcompute.distributed.shard_work import ShardWork

__all__ = [
    "ClusterRun",
    "ClusterShards",
    "ShardMessages",
    "ShardProgress",
    "ShardStart",
    "ShardState",
    "ShardWork",
    "ShardedJob",
    "answer",
    "is_done",
    "kept_graph",
    "kept_items",
    "kept_options",
    "read_job",
    "run_on_cluster",
    "run_shard",
    "shard_ranges",
]
