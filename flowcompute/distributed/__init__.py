"""Shards of one job: the same plan over ranges of its records, whose fold states merge to the bits of the whole."""

from flowcompute.distributed.resolving import resolve_on
from flowcompute.distributed.shard_job import ShardedJob
from flowcompute.distributed.shard_message import ShardMessages, answer
from flowcompute.distributed.shard_ranges import shard_ranges
from flowcompute.distributed.shard_runner import run_shard
from flowcompute.distributed.shard_start import ShardProgress, ShardStart, ShardState

__all__ = [
    "ShardMessages",
    "ShardProgress",
    "ShardStart",
    "ShardState",
    "ShardedJob",
    "answer",
    "resolve_on",
    "run_shard",
    "shard_ranges",
]
