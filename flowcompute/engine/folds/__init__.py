"""Folds over the stream: blocks, their tree, their state."""

from flowcompute.engine.folds.accumulator import Accumulator
from flowcompute.engine.folds.block_tree import RecordBlocks
from flowcompute.engine.folds.blocked_fold import BlockedAccumulator
from flowcompute.engine.folds.fold import Fold, Merged
from flowcompute.engine.folds.fused_products import fused_multiply_add

__all__ = ["Accumulator", "BlockedAccumulator", "Fold", "Merged", "RecordBlocks", "fused_multiply_add"]
