"""Strategy: the tunable knobs, which never change a result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Self

from flowcompute.errors import PlanError, short_repr
from flowcompute.files import ForeignJsonError, read_json
from flowcompute.html import heading, table
from flowcompute.imports import dataclass
from flowcompute.strategy.knobs import KERNEL_KNOBS, KernelKnobs, Range, knob

Pairs = tuple[tuple[str, KernelKnobs], ...]
Kernels = Pairs | Mapping[str, KernelKnobs] | Mapping[str, Mapping[str, int]]
"""Knobs by the names of kernels."""

_INPUTS = ("mapped", "read")
_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Strategy(KernelKnobs):
    """Knobs of the speed of a run and of its kernels. The store or the planner chooses the unset ones (None).

    Attributes:
        kernels: knobs of single kernels by their name in the plan ("k0"), which override those given for all. Any
            mapping is accepted; it is stored as pairs in the order of names.

    Raises:
        PlanError: when made with a knob out of its range.
    """

    batch_bytes: int | None = knob(Range(1, 1 << 34), "bytes of the widest buffer in a batch")
    depth: int | None = knob(Range(1, 64), "batches in flight on an edge")
    joined_batches: int | None = knob(Range(1, 64), "available batches that are computed as one")
    reader_threads: int | None = knob(Range(1, 64), "threads that share the reading of a batch of a file")
    input: Literal["mapped", "read"] | None = field(default=None, metadata={"doc": "how files are read"})
    kernels: Kernels = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.input not in (None, *_INPUTS):
            raise PlanError(
                "cannot use this value of input",
                element="strategy",
                expected="'mapped' or 'read'",
                got=short_repr(self.input),
            )
        object.__setattr__(self, "kernels", _pairs(self.kernels))

    def by_kernel(self) -> dict[str, KernelKnobs]:
        """Return the knobs of single kernels."""
        return dict(_pairs(self.kernels))

    def of_kernel(self, name: str) -> KernelKnobs:
        """Return the knobs of the kernel of this name."""
        return self.by_kernel().get(name, KernelKnobs()).over(self)

    def with_defaults(self, other: Strategy) -> Strategy:
        """Return these knobs, with those of `other` where these are unset.

        A knob that is set for all kernels here overrides those of `other` for single kernels.
        """
        merged = {**other.plain(), **self.plain()}
        own, theirs = self.by_kernel(), other.by_kernel()
        pinned = {name: None for name in KERNEL_KNOBS if getattr(self, name) is not None}
        kernels = {
            name: own.get(name, KernelKnobs()).over(dataclasses.replace(theirs.get(name, KernelKnobs()), **pinned))
            for name in {**theirs, **own}
        }
        return Strategy(**{**merged, "kernels": kernels})

    def plain(self) -> dict[str, Any]:
        """Return the set knobs by name, as plain data."""
        knobs = super().plain()
        kernels = {name: own.plain() for name, own in knobs.pop("kernels") if own.plain()}
        return {**knobs, **({"kernels": kernels} if kernels else {})}

    def to_json(self) -> str:
        """Return the set knobs as JSON."""
        return json.dumps(self.plain(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Construct the strategy from the result of `to_json`.

        Raises:
            PlanError: if the text is something else.
        """
        try:
            return read_json(text, cls.from_plain, limit_bytes=_LIMIT_BYTES)
        except (ForeignJsonError, TypeError) as error:
            raise PlanError(f"cannot read the text as a strategy: {error}", element="strategy") from error

    def __repr__(self) -> str:
        return f"Strategy({', '.join(f'{name}={value!r}' for name, value in self.plain().items())})"

    def _repr_html_(self) -> str:
        of = dict.fromkeys(KERNEL_KNOBS, "every kernel")
        every = {name: value for name, value in super().plain().items() if name != "kernels"}
        rows = [(of.get(name, "run"), name, str(value)) for name, value in every.items()]
        for kernel, own in self.by_kernel().items():
            rows += [(kernel, name, str(value)) for name, value in own.plain().items()]
        return heading("Strategy", "" if rows else "defaults") + (table(("of", "knob", "value"), rows) if rows else "")

    def __str__(self) -> str:
        every = {name: value for name, value in super().plain().items() if name != "kernels"}
        words = [f"{name}={value}" for name, value in every.items()]
        words += [f"{name}({own})" for name, own in self.by_kernel().items()]
        return ", ".join(words) or "defaults"


def _pairs(kernels: Any) -> Pairs:
    """Return the knobs by kernel, from a mapping or pairs, without kernels that have none."""
    try:
        given = dict(kernels)
    except (TypeError, ValueError):
        given = {"": kernels}
    pairs = []
    for name, own in given.items():
        if not isinstance(name, str) or not name:
            raise PlanError(
                "cannot read kernels= as knobs by the names of kernels",
                element="strategy",
                expected='a mapping like {"k0": {"unroll": 2}}',
                got=short_repr(kernels)[:80],
            )
        knobs = own if type(own) is KernelKnobs else KernelKnobs.from_plain(own, f"kernel {name} of the strategy")
        if knobs.plain():
            pairs.append((name, knobs))
    return tuple(sorted(pairs, key=lambda pair: (len(pair[0]), pair[0])))
