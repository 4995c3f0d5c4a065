"""Rewrite that computes values again for late readers."""

from flowcompute.rewrite.recomputing.recomputed_values import recompute_values

__all__ = ["recompute_values"]
