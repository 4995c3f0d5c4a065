"""Decisions of planning that shape a run's state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shaping:
    """What a frozen job is thawed with, whatever device and budget it gets then: its state has this shape.

    Attributes:
        float64: whether means over selected records are divided sums, which needs double precision.
        fused: whether dot products of items in pieces add their products with one rounding.
        piece_bytes: items larger than this are streamed number by number; None where none are.
    """

    float64: bool
    fused: bool
    piece_bytes: int | None = None
