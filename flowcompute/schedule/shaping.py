"""Planning decisions that determine the layout of a run's state."""

from __future__ import annotations

from flowcompute.imports import dataclass


@dataclass(frozen=True)
class Shaping:
    """Decisions that a frozen job keeps on every device and under every budget, since its state depends on them.

    Attributes:
        float64: True if means over selected records divide sums, which needs double precision.
        fused: True if dot products of split items add each product with a single rounding.
        piece_bytes: items larger than this are streamed number by number. None if none are.
        half_windows: True if convolutions of half formats have the order of tensor cores on devices that have it. Jobs
            that were frozen before there was such an order keep sums in float32.
        product_order: version of the order of sums of products over the records of short streams on CPUs: 2 for that of
            kernels, which jobs had not that were frozen before.
        block_terms: True if tensor cores multiply decoded numbers where `precision="tf32x3"` lets them. Jobs that were
            frozen before they did keep sums in the order of other devices.
    """

    float64: bool
    fused: bool
    piece_bytes: int | None = None
    half_windows: bool = True
    product_order: int = 2
    block_terms: bool = True
