"""Strategy: what may be tuned and never changes an answer."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from flowcompute.errors import PlanError


def _knob(low: int, high: int, doc: str) -> Any:
    """A whole-number knob with its range, unset by default."""
    return field(default=None, metadata={"low": low, "high": high, "doc": doc})


@dataclass(frozen=True)
class Strategy:
    """Knobs of speed. An unset knob (None) is left to the planner; a set one is a pin.

    Raises:
        PlanError: when made with a knob out of its range.
    """

    batch_bytes: int | None = _knob(1, 1 << 34, "bytes of the widest edge in a batch")
    depth: int | None = _knob(1, 64, "batches in flight on an edge")
    unroll: int | None = _knob(1, 64, "vectors that one turn of an element-wise loop takes")
    work_group: int | None = _knob(1, 1024, "work-items that share local memory, on GPUs")
    items_per_work_item: int | None = _knob(1, 1 << 24, "numbers that one work-item takes, on CPUs")
    input: Literal["mapped", "read"] | None = field(default=None, metadata={"doc": "how files are read"})

    def __post_init__(self) -> None:
        for knob in dataclasses.fields(self):
            value = getattr(self, knob.name)
            if value is None:
                continue
            if knob.name == "input":
                if value not in ("mapped", "read"):
                    raise PlanError("input is 'mapped' or 'read'", element="strategy", got=repr(value))
                continue
            low, high = knob.metadata["low"], knob.metadata["high"]
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise PlanError(
                    f"{knob.name} is out of its range",
                    element="strategy",
                    expected=f"a whole number from {low} to {high} ({knob.metadata['doc']})",
                    got=repr(value),
                )

    def to_json(self) -> str:
        """The set knobs as JSON."""
        knobs = {knob.name: getattr(self, knob.name) for knob in dataclasses.fields(self)}
        return json.dumps({name: value for name, value in knobs.items() if value is not None}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The strategy that `to_json` wrote.

        Raises:
            PlanError: if the text is not that.
        """
        names = {knob.name for knob in dataclasses.fields(cls)}
        try:
            knobs = json.loads(text)
            unknown = sorted(set(knobs) - names)
        except (ValueError, TypeError) as error:
            raise PlanError(f"not a strategy: {error}", element="strategy") from error
        if not isinstance(knobs, dict) or unknown:
            raise PlanError(
                "not a strategy", element="strategy", got=f"unknown knobs {unknown}" if unknown else text[:80]
            )
        return cls(**knobs)

    def __str__(self) -> str:
        knobs = [(knob.name, getattr(self, knob.name)) for knob in dataclasses.fields(self)]
        return ", ".join(f"{name}={value}" for name, value in knobs if value is not None) or "defaults"
