"""Strategy: what may be tuned and never changes an answer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from flowcompute.errors import PlanError
from flowcompute.strategy.knobs import KERNEL_KNOBS, KernelKnobs, Range, knob

Pairs = tuple[tuple[str, KernelKnobs], ...]
Kernels = Pairs | Mapping[str, KernelKnobs] | Mapping[str, Mapping[str, int]]
"""Knobs by the names of kernels."""

_INPUTS = ("mapped", "read")


@dataclass(frozen=True, kw_only=True)
class Strategy(KernelKnobs):
    """Knobs of speed, of a run and of its kernels. An unset knob (None) is left to the store or the planner.

    Attributes:
        kernels: knobs of single kernels by their name in the plan ("k0"), before those given for all.
            Any mapping may be given; it is kept as pairs in the order of names.

    Raises:
        PlanError: when made with a knob out of its range.
    """

    batch_bytes: int | None = knob(Range(1, 1 << 34), "bytes of the widest buffer in a batch")
    depth: int | None = knob(Range(1, 64), "batches in flight on an edge")
    joined_batches: int | None = knob(Range(1, 64), "batches that are computed as one where they are there")
    reader_threads: int | None = knob(Range(1, 64), "threads that read a batch of a file together")
    input: Literal["mapped", "read"] | None = field(default=None, metadata={"doc": "how files are read"})
    kernels: Kernels = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.input not in (None, *_INPUTS):
            raise PlanError("input is 'mapped' or 'read'", element="strategy", got=repr(self.input))
        object.__setattr__(self, "kernels", _pairs(self.kernels))

    def by_kernel(self) -> dict[str, KernelKnobs]:
        """Knobs of single kernels."""
        return dict(_pairs(self.kernels))

    def of_kernel(self, name: str) -> KernelKnobs:
        """The knobs of the kernel of this name."""
        return self.by_kernel().get(name, KernelKnobs()).over(self)

    def with_defaults(self, other: Strategy) -> Strategy:
        """These knobs, and those of `other` where these are unset; one set for all kernels goes before any of it."""
        merged = {**other.plain(), **self.plain()}
        own, theirs = self.by_kernel(), other.by_kernel()
        pinned = {name: None for name in KERNEL_KNOBS if getattr(self, name) is not None}
        kernels = {
            name: own.get(name, KernelKnobs()).over(dataclasses.replace(theirs.get(name, KernelKnobs()), **pinned))
            for name in {**theirs, **own}
        }
        return Strategy(**{**merged, "kernels": kernels})

    def plain(self) -> dict[str, Any]:
        """The set knobs by name, as plain data."""
        knobs = super().plain()
        kernels = {name: own.plain() for name, own in knobs.pop("kernels") if own.plain()}
        return {**knobs, **({"kernels": kernels} if kernels else {})}

    def to_json(self) -> str:
        """The set knobs as JSON."""
        return json.dumps(self.plain(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The strategy that `to_json` wrote.

        Raises:
            PlanError: if the text is not that.
        """
        try:
            knobs = json.loads(text)
        except (ValueError, TypeError) as error:
            raise PlanError(f"not a strategy: {error}", element="strategy") from error
        return cls.from_plain(knobs)

    def __str__(self) -> str:
        every = {name: value for name, value in super().plain().items() if name != "kernels"}
        words = [f"{name}={value}" for name, value in every.items()]
        words += [f"{name}({own})" for name, own in self.by_kernel().items()]
        return ", ".join(words) or "defaults"


def _pairs(kernels: Any) -> Pairs:
    """Knobs by kernel, from a mapping or from pairs, without kernels that have none."""
    try:
        given = dict(kernels)
    except (TypeError, ValueError):
        given = {"": kernels}
    pairs = []
    for name, own in given.items():
        if not isinstance(name, str) or not name:
            raise PlanError(
                "kernels= is knobs by the names of kernels",
                element="strategy",
                expected='as kernels={"k0": {"unroll": 2}}',
                got=repr(kernels)[:80],
            )
        knobs = own if type(own) is KernelKnobs else KernelKnobs.from_plain(own, f"kernel {name} of the strategy")
        if knobs.plain():
            pairs.append((name, knobs))
    return tuple(sorted(pairs, key=lambda pair: (len(pair[0]), pair[0])))
