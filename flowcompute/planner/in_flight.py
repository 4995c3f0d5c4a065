"""How many small batches are in flight to a device across a bus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from flowcompute.errors import PlanError
from flowcompute.planner.backend import Traits
from flowcompute.planner.plan import Pass
from flowcompute.planner.run_knobs import DEFAULT_BATCH_BYTES
from flowcompute.strategy import Strategy

IN_FLIGHT_BYTES = 64 << 20
"""Small batches make trips to threads together: as many are in flight to a device as come to so many bytes."""

MOST_IN_FLIGHT = 64
"""Small batches in flight to a device, at most."""

DEEPEST = 64
"""The most that the knob can be."""

SLOTS_BYTES = 16 << 20
"""Pinned memory that the arrays of small batches go through on their way to a device, at most."""

_UPLOADS = 3
"""Trips uploaded at a time: handing one to a thread and back takes as long as copying some tens of MiB, and small
batches are copied by the threads that carry them, 7 GB/s each where a bus carries 50."""


def pinned(staging_bytes: int) -> int:
    """Pinned memory of a device for transfers: the pieces that large arrays go through, and what small batches have."""
    return staging_bytes + min(SLOTS_BYTES, staging_bytes // 2)


def batches_of_each(depth: int, traits: Traits) -> int:
    """Batches in flight on one device, where all have so many together; no more where it computes them alone."""
    return -(-depth // traits.devices)


def uploads_at_a_time(depth: int) -> int:
    """Trips that are uploaded at a time to a device."""
    return min(_UPLOADS, depth)


class Sized(Protocol):
    """A pass with the sizes of its batches."""

    @property
    def planned(self) -> Pass:
        """The pass."""


SizedT = TypeVar("SizedT", bound=Sized)


def deepened(
    strategy: Strategy, traits: Traits, depth: int, size: Callable[[int], Sequence[SizedT]]
) -> tuple[int, Sequence[SizedT]]:
    """More batches in flight, where they are asked to be small and there is room without making them smaller.

    Args:
        strategy: says how large batches are to be, and maybe how many.
        traits: of the device.
        depth: how many it would be otherwise.
        size: the passes with some depth.

    Returns:
        The depth, and the passes with it.

    Raises:
        PlanError: if there is no room for the smallest batches with `depth`.
    """
    sized = size(depth)
    batch_bytes = strategy.batch_bytes or DEFAULT_BATCH_BYTES[traits.code_shape]
    more = min(MOST_IN_FLIGHT, IN_FLIGHT_BYTES // batch_bytes) * traits.devices
    more = min(more, DEEPEST)
    while strategy.depth is None and not traits.host_memory and more > depth:
        try:
            again = size(more)
        except PlanError:
            again = []
        if [one.planned for one in again] == [one.planned for one in sized]:
            return more, again
        more //= 2
    return depth, sized
