"""Values that whoever runs a graph gives it: what a step of training begins with, and its records."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NoReturn

from flowcompute.elements.element import Element
from flowcompute.elements.source import Source
from flowcompute.spec import INT64, UINT64, Spec, Stream

STEP = "step"
"""Key of the number of a step, from 1 on."""


class Given(Element):
    """A resident value that is given anew for each step.

    Attributes:
        key: which one it is: `STEP`, "value.3", or that of a stream of random numbers.
        seed: of a key of random numbers the seed that its user gave; None of other values.
        is_viewed: whether kernels read through views of it. Only planning makes such ones.
    """

    key: str
    seed: int | None
    is_viewed: bool

    def __init__(self, key: str, spec: Spec, *, seed: int | None = None, name: str | None = None) -> None:
        super().__init__(spec, (), name)
        self.freeze_fields(key=key, seed=seed, is_viewed=False)

    @classmethod
    def seeded(cls, seed: int) -> Given:
        """Return the key of random numbers of a step, which follows from a seed and the step's number."""
        return cls(f"seed.{seed}", Spec(UINT64, ()), seed=seed)

    def viewed(self) -> Given:
        """Return the same value, which kernels read through views."""
        twin = copy.copy(self)
        twin.freeze_fields(is_viewed=True)
        return twin

    @property
    def is_carried(self) -> bool:
        """True where it is what the last step has made of it, neither a key nor the number of the step."""
        return self.seed is None and self.key != STEP

    def is_known(self, values: Sequence[Spec]) -> bool:
        """Check whether a training that carries such values on can give this one."""
        if self.seed is not None:
            return self.key == f"seed.{self.seed}" and self.spec == Spec(UINT64, ())
        if self.key == STEP:
            return self.spec == Spec(INT64, ())
        what, _, place = self.key.partition(".")
        known = what == "value" and place.isdecimal() and len(place) < 10 and int(place) < len(values)
        return known and self.spec == values[int(place)]

    @property
    def label(self) -> str:
        """The key."""
        return self.key


class GivenStream(Source):
    """The records of a step, in the order in which they are drawn.

    Attributes:
        place: of the source that they are read from, among those of the training.
    """

    rereadable = True
    seekable = True

    place: int

    def __init__(self, place: int, spec: Spec, *, name: str | None = None) -> None:
        super().__init__(spec, name=name)
        self.freeze_fields(place=place)

    @classmethod
    def of(cls, place: int, source: Element, records: int) -> GivenStream:
        """Return as many records of a source."""
        made = cls(place, Spec(source.dtype, source.spec.shape, Stream(records)), name=source.name)
        made.freeze_fields(site=source.site)
        return made

    @property
    def label(self) -> str:
        """Word for it in drawings."""
        return "records"

    @property
    def identity(self) -> tuple[object, ...]:
        """Place of what it is read from."""
        return ("given", self.place)

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why records are copied into buffers."""
        return "records of a step are drawn one by one"

    def open(self, *, position: int = 0, mapped: bool = True) -> NoReturn:
        """Refuse: whoever runs the step gives its records."""
        raise NotImplementedError("the records of a step are given")
