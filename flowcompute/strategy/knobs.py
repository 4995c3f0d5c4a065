"""Knobs: whole numbers with a range, and the knobs of kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any, Self

from flowcompute.errors import PlanError, short_repr
from flowcompute.imports import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """Range of values of a knob.

    Attributes:
        low, high: the smallest and the largest value.
        powers: whether only powers of two are allowed.
    """

    low: int
    high: int
    powers: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int) or isinstance(value, bool) or not self.low <= value <= self.high:
            return False
        return not self.powers or value & (value - 1) == 0

    def __str__(self) -> str:
        return f"a {'power of two' if self.powers else 'whole number'} from {self.low} to {self.high}"


def knob(range_: Range, doc: str) -> Any:
    """Return a dataclass field of a knob that is unset by default, with its range and description."""
    return field(default=None, metadata={"range": range_, "doc": doc})


def check_knobs(knobs: Any) -> None:
    """Check that the whole-number knobs of a record are within their ranges.

    Raises:
        PlanError: if one is not.
    """
    for name, range_, doc in _ranges(knobs.__class__):
        value = getattr(knobs, name)
        if value is not None and value not in range_:
            raise PlanError(
                f"cannot set {name} outside of its range",
                element="strategy",
                expected=f"{range_} ({doc})",
                got=short_repr(value),
            )


@cache
def _ranges(kind: type) -> tuple[tuple[str, Range, str], ...]:
    """Return name, range and description of each whole-number knob of a record."""
    known = ((one.name, one.metadata) for one in dataclasses.fields(kind))
    return tuple((name, about["range"], about["doc"]) for name, about in known if "range" in about)


@dataclass(frozen=True, kw_only=True)
class KernelKnobs:
    """Knobs of one kernel. The planner chooses the unset ones (None).

    The table of `lower.kernel_knobs` lists the knobs of each kind of kernel.

    Raises:
        PlanError: when made with a knob out of its range.
    """

    vector_width: int | None = knob(Range(2, 16, powers=True), "numbers in a vector")
    unroll: int | None = knob(Range(1, 16, powers=True), "unrolled iterations of the innermost loop")
    function_unroll: int | None = knob(
        Range(1, 16, powers=True), "unrolled iterations of loops over `range` in users' functions"
    )
    work_group: int | None = knob(Range(32, 1024, powers=True), "work-items that share local memory, on GPUs")
    items_per_work_item: int | None = knob(Range(1, 1 << 24), "numbers that one work-item processes")
    fold_parts: int | None = knob(Range(1, 256, powers=True), "parts of a batch's folds, for each compute unit")
    tile_rows: int | None = knob(Range(2, 128, powers=True), "rows of a product, queries, or runs of a scan in a tile")
    tile_columns: int | None = knob(Range(8, 128, powers=True), "columns of a product in a tile")
    block_rows: int | None = knob(Range(16, 128, powers=True), "queries that share one load of a tile of keys")

    team_blocks: int | None = knob(Range(1, 2), "blocks of a long row that a sub-group of 32 work-items holds, on GPUs")

    def __post_init__(self) -> None:
        check_knobs(self)

    @classmethod
    def from_plain(cls, knobs: object, where: str = "strategy") -> Self:
        """Construct the knobs from the result of `plain`.

        Raises:
            PlanError: if `knobs` is something else.
        """
        names = {one.name for one in dataclasses.fields(cls)}
        if not isinstance(knobs, Mapping) or not names.issuperset(knobs):
            unknown = f"unknown knobs {sorted(map(str, set(knobs) - names))}" if isinstance(knobs, Mapping) else None
            raise PlanError("cannot read these as knobs", element=where, got=unknown or repr(knobs)[:80])
        return cls(**knobs)

    def plain(self) -> dict[str, Any]:
        """Return the set knobs by name."""
        knobs = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {name: value for name, value in knobs.items() if value is not None}

    def over(self, other: KernelKnobs) -> KernelKnobs:
        """Return these kernel knobs, with those of `other` where these are unset."""
        names = KERNEL_KNOBS
        return KernelKnobs(**{name: _first(getattr(self, name), getattr(other, name)) for name in names})

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.plain().items()) or "defaults"


KERNEL_KNOBS = tuple(one.name for one in dataclasses.fields(KernelKnobs))
"""Names of the knobs that kernels may have."""


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value
