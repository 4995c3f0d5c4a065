"""Knobs: whole numbers with a range, and those of them that a kernel may have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from flowcompute.errors import PlanError


@dataclass(frozen=True, slots=True)
class Range:
    """What a knob may be.

    Attributes:
        low, high: the smallest and the largest value.
        powers: whether only powers of two are meant.
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
    """A field that is unset by default and has a range and a meaning."""
    return field(default=None, metadata={"range": range_, "doc": doc})


def check_knobs(knobs: Any) -> None:
    """Hold the whole-number knobs of a record against their ranges.

    Raises:
        PlanError: if one is out of its range.
    """
    for one in dataclasses.fields(knobs):
        value, range_ = getattr(knobs, one.name), one.metadata.get("range")
        if range_ is not None and value is not None and value not in range_:
            raise PlanError(
                f"{one.name} is out of its range",
                element="strategy",
                expected=f"{range_} ({one.metadata['doc']})",
                got=repr(value),
            )


@dataclass(frozen=True, kw_only=True)
class KernelKnobs:
    """Knobs of one kernel; an unset one (None) is left to the planner.

    Which kernels have which knobs is the table of `lower.kernel_knobs`.

    Raises:
        PlanError: when made with a knob out of its range.
    """

    vector_width: int | None = knob(Range(2, 16, powers=True), "numbers in a vector")
    unroll: int | None = knob(Range(1, 16, powers=True), "turns of the innermost loop that are written out")
    function_unroll: int | None = knob(
        Range(1, 16, powers=True), "turns of loops over `range` in users' functions that are written out"
    )
    work_group: int | None = knob(Range(32, 1024, powers=True), "work-items that share local memory, on GPUs")
    items_per_work_item: int | None = knob(Range(1, 1 << 24), "numbers that one work-item takes")
    fold_parts: int | None = knob(Range(1, 256, powers=True), "parts of a batch's folds, for each compute unit")
    tile_rows: int | None = knob(
        Range(2, 128, powers=True), "rows of a product, queries, or runs of a scan that are made together"
    )
    tile_columns: int | None = knob(Range(8, 128, powers=True), "columns of a product that are made together")
    block_rows: int | None = knob(Range(16, 128, powers=True), "queries for which a tile of keys is brought once")

    team_blocks: int | None = knob(Range(1, 2), "blocks of a long row that 32 work-items hold, on GPUs")

    def __post_init__(self) -> None:
        check_knobs(self)

    @classmethod
    def from_plain(cls, knobs: object, where: str = "strategy") -> Self:
        """The knobs that `plain` gave.

        Raises:
            PlanError: if it is something else.
        """
        names = {one.name for one in dataclasses.fields(cls)}
        if not isinstance(knobs, Mapping) or not names.issuperset(knobs):
            unknown = f"unknown knobs {sorted(map(str, set(knobs) - names))}" if isinstance(knobs, Mapping) else None
            raise PlanError("these are no knobs", element=where, got=unknown or repr(knobs)[:80])
        return cls(**knobs)

    def plain(self) -> dict[str, Any]:
        """The set knobs by name."""
        knobs = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {name: value for name, value in knobs.items() if value is not None}

    def over(self, other: KernelKnobs) -> KernelKnobs:
        """These kernel knobs, and those of `other` where these are unset."""
        names = KERNEL_KNOBS
        return KernelKnobs(**{name: _first(getattr(self, name), getattr(other, name)) for name in names})

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.plain().items()) or "defaults"


KERNEL_KNOBS = tuple(one.name for one in dataclasses.fields(KernelKnobs))
"""Names of the knobs that kernels may have."""


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value
