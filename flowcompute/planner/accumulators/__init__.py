"""Folds whose state is kept on the host, one subject a file."""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.planner.accumulator import Accumulator
from flowcompute.planner.accumulators.counts import Counts, Histogram
from flowcompute.planner.accumulators.covariance import Covariance
from flowcompute.planner.accumulators.ends import End
from flowcompute.planner.accumulators.products import Products
from flowcompute.planner.accumulators.segments import SegmentExtremes, SegmentSums
from flowcompute.planner.accumulators.sketch import Sketch
from flowcompute.planner.accumulators.top_k import TopK
from flowcompute.planner.fold import Fold
from flowcompute.planner.fold_spec import FoldSpec, HostFold

ACCUMULATORS: dict[str, Callable[[HostFold, int], Accumulator]] = {
    "bincount": Counts,
    "corrcoef": Covariance,
    "cov": Covariance,
    "first": End,
    "histogram": Histogram,
    "last": End,
    "matmul": Products,
    "quantile": Sketch,
    "segment_max": SegmentExtremes,
    "segment_mean": SegmentSums,
    "segment_min": SegmentExtremes,
    "segment_sum": SegmentSums,
    "top_k_indices": TopK,
    "top_k_values": TopK,
}
"""By name of the fold: what makes its state over the records from some index on."""


def make_fold(spec: FoldSpec | HostFold, start: int = 0) -> Fold | Accumulator:
    """Make the state of a fold over the records from `start` on."""
    return Fold(spec, start) if isinstance(spec, FoldSpec) else ACCUMULATORS[spec.op](spec, start)


__all__ = ["ACCUMULATORS", "make_fold"]
