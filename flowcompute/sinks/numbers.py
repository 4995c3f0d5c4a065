"""Destinations whose items are larger than memory and arrive in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements import Destination, Promise, StagingArea, State, Writer
from flowcompute.spec import Spec


class NumbersSink(Destination):
    """A destination that writes the items of another destination number by number. Only the planner makes it.

    Args:
        inner: the destination that is written; it `takes_numbers`.
        spec: of the stream of numbers that arrives.
    """

    inner: Destination

    def __init__(self, inner: Destination, spec: Spec) -> None:
        super().__init__(spec)
        self.freeze_fields(inner=inner, inputs=inner.inputs, site=inner.site, in_memory=inner.in_memory)

    @property
    def label(self) -> str:
        """Label of the inner destination."""
        return self.inner.name or self.inner.label

    @property
    def origin(self) -> str:
        """The file of the inner destination, if there is one."""
        return self.inner.origin

    def open(self, spec: Spec) -> NumbersWriter:
        """Start writing items of the inner destination's shape."""
        del spec
        return NumbersWriter(self.inner.open(self.inner.spec))

    @property
    def promise(self) -> Promise:  # type: ignore[override]
        """Promise of the inner destination."""
        return self.inner.promise

    def open_at(self, spec: Spec, place: StagingArea) -> NumbersWriter:
        """Start writing, for a job that can be resumed."""
        del spec
        return NumbersWriter(self.inner.open_at(self.inner.spec, place))

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> NumbersWriter:
        """Continue where a frozen job was."""
        del spec
        return NumbersWriter(self.inner.reopen(self.inner.spec, place, state))

    def recover(self, spec: Spec, place: StagingArea, state: State) -> Any:
        """Return the value of a finished job."""
        del spec
        return self.inner.recover(self.inner.spec, place, state)


class NumbersWriter(Writer):
    """Writer that passes numbers on."""

    def __init__(self, inner: Writer) -> None:
        self.immediate = inner.immediate
        self._inner = inner

    def write(self, array: np.ndarray, start: int) -> None:
        """Write numbers; see `Writer.write_numbers`."""
        self._inner.uncached = self.uncached
        self._inner.write_numbers(array, start)

    def commit(self) -> Any:
        """Commit what was written."""
        return self._inner.commit()

    def abort(self) -> None:
        """Drop what was written."""
        self._inner.abort()

    def snapshot(self) -> State:
        """Return the inner writer's state."""
        return self._inner.snapshot()

    def persist(self, state: State, place: StagingArea) -> State:
        """Make what was written durable."""
        return self._inner.persist(state, place)

    def suspend(self) -> None:
        """Leave what was written in place."""
        self._inner.suspend()

    def seal(self, place: StagingArea) -> State:
        """Complete what was written."""
        return self._inner.seal(place)
