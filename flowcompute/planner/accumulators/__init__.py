"""Folds whose state is kept on the host, one subject a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowcompute.planner.accumulator import Accumulator
from flowcompute.planner.accumulators.counts import Counts, Histogram
from flowcompute.planner.accumulators.covariance import Covariance
from flowcompute.planner.accumulators.ends import End
from flowcompute.planner.accumulators.host_fold import HostFold
from flowcompute.planner.accumulators.products import Products
from flowcompute.planner.accumulators.segments import SegmentExtremes, SegmentSums
from flowcompute.planner.accumulators.sketch import Sketch
from flowcompute.planner.accumulators.top_k import TopK
from flowcompute.spec import Spec

_Kind = tuple[Callable[[HostFold, int], Accumulator], Callable[[HostFold, int | None], int]]

_KINDS: dict[str, _Kind] = {
    "bincount": (Counts, Counts.state_bytes),
    "corrcoef": (Covariance, Covariance.state_bytes),
    "cov": (Covariance, Covariance.state_bytes),
    "first": (End, End.state_bytes),
    "histogram": (Histogram, Histogram.state_bytes),
    "last": (End, End.state_bytes),
    "matmul": (Products, Products.state_bytes),
    "quantile": (Sketch, Sketch.state_bytes),
    "segment_max": (SegmentExtremes, SegmentExtremes.state_bytes),
    "segment_mean": (SegmentSums, SegmentSums.state_bytes),
    "segment_min": (SegmentExtremes, SegmentExtremes.state_bytes),
    "segment_sum": (SegmentSums, SegmentSums.state_bytes),
    "top_k_indices": (TopK, TopK.state_bytes),
    "top_k_values": (TopK, TopK.state_bytes),
}
"""By name of the fold: what makes its state, and how many bytes that takes."""


def accumulator_spec(op: str, operands: Sequence[Spec], attrs: Mapping[str, Any], result: Spec) -> HostFold:
    """What a fold computes that is not one of `planner.fold.CANONICAL_FOLDS`."""
    accumulator, needs = _KINDS[op]
    return HostFold(op, tuple(operands), tuple(sorted(attrs.items())), result, accumulator, needs)


__all__ = ["HostFold", "accumulator_spec"]
