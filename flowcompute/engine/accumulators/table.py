"""Folds whose state is kept on the host, one subject a file."""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.engine.accumulators.counts import Counts, Histogram
from flowcompute.engine.accumulators.covariance import Covariance
from flowcompute.engine.accumulators.different import Different
from flowcompute.engine.accumulators.kept_records import AllRecords, End
from flowcompute.engine.accumulators.products import Products
from flowcompute.engine.accumulators.segments import SegmentExtremes, SegmentSums
from flowcompute.engine.accumulators.sketch import Sketch
from flowcompute.engine.accumulators.top_k import TopK
from flowcompute.engine.accumulators.trained import TrainedValue
from flowcompute.engine.folds import Accumulator, Fold
from flowcompute.ir import FoldSpec, HostFold

ACCUMULATORS: dict[str, Callable[[HostFold, int], Accumulator]] = {
    "all_records": AllRecords,
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
    "trained": TrainedValue,
    "unique_counts": Different,
    "unique_values": Different,
}
"""By name of the fold: what makes its state over the records from some index on."""


def make_fold(spec: FoldSpec | HostFold, start: int = 0) -> Fold | Accumulator:
    """Make the state of a fold over the records from `start` on."""
    return Fold(spec, start) if isinstance(spec, FoldSpec) else ACCUMULATORS[spec.op](spec, start)


__all__ = ["ACCUMULATORS", "make_fold"]
