"""Folds whose state is kept on the host, one subject a file."""

from flowcompute.engine.accumulators.table import make_fold

__all__ = ["make_fold"]
