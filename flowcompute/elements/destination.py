"""Destinations: where data goes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from flowcompute.elements.element import Element
from flowcompute.elements.keeping import Promise, StagingArea, State
from flowcompute.errors import SpecError
from flowcompute.spec import Spec


class Writer(ABC):
    """An opened Destination: the only place where writing has state.

    Methods may block and are called from worker threads, one call at a time. `write` comes in record order without
    gaps, then exactly one of `commit` and `abort`.
    """

    immediate: bool = False
    """True where `write` returns at once, so that it needs no worker thread."""

    uncached: bool = False
    """True where what is written need not stay in the system's cache; set by the runtime after opening."""

    @abstractmethod
    def write(self, array: np.ndarray, start: int) -> None:
        """Take records `start` to `start + len(array)`; a resident value arrives whole with start 0.

        The array is only valid during the call.

        Raises:
            DestinationError: if it cannot be written.
        """

    def buffer(self, start: int, stop: int) -> np.ndarray | None:  # noqa: ARG002 - for those that lend memory
        """Return memory for records `start` to `stop` that `write` would copy to, or None.

        When the producer fills it, `write` is called with the very same array and copies nothing.
        """
        return None

    def write_numbers(self, array: np.ndarray, start: int) -> None:
        """Take numbers `start` to `start + len(array)` of all items of the stream, counted without a gap.

        Only called where `Destination.takes_numbers`.
        """
        raise NotImplementedError(f"takes whole records only: {len(array)} numbers from {start}")

    @abstractmethod
    def commit(self) -> Any:
        """Make everything durable and visible under its final name; returns the root's value."""

    @abstractmethod
    def abort(self) -> None:
        """Drop everything written; leaves no trace. Harmless after `commit` and when called twice."""

    # -- several processes that write one result, where `Destination.takes_regions` ------------

    def lend(self) -> str:
        """Return what `Destination.join` takes in other processes; this one writes no record then."""
        raise NotImplementedError("one process writes it")

    def filled(self, records: int) -> None:
        """Take note that others have written so many records, from the first one on; `commit` may follow."""
        raise NotImplementedError(f"one process writes it: {records} records")

    def sync(self) -> None:
        """Make durable what was written so far, of a result that was joined.

        Raises:
            DestinationError: if that fails.
        """
        raise NotImplementedError("one process writes it")

    # -- checkpoints --------------------------------------------------------------------------

    def snapshot(self) -> State:
        """Return the state of what was written so far, as plain data; called between two writes, and quick."""
        return {}

    def persist(self, state: State, place: StagingArea) -> State:  # noqa: ARG002 - nothing to do for many
        """Make durable what `snapshot` has said; called in a thread of its own, while writing goes on.

        Returns:
            The state for `Destination.reopen`.

        Raises:
            DestinationError: if that fails.
        """
        return state

    def suspend(self) -> None:
        """Close, and leave what was written where it is for `Destination.reopen`; instead of `abort`."""
        self.abort()

    def seal(self, place: StagingArea) -> State:
        """Make everything durable, so that only the final name is missing; `commit` follows.

        Returns:
            What `Destination.recover` needs where the process does not live to see it.

        Raises:
            DestinationError: if that fails.
        """
        return self.persist(self.snapshot(), place)


class Destination(Element, ABC):
    """An element through which data goes out.

    Made unbound (`fc.save("y.npy")`) and bound to an input by `input >> destination`,
    which gives a new element and leaves the unbound one as it was.
    """

    takes_numbers: bool = False
    """True where items may be written in parts, where they are too large for memory."""

    takes_regions: bool = False
    """True where processes may write ranges of the records of one stream side by side."""

    takes_named: bool = False
    """True where several resident values are taken, by their names."""

    in_memory: bool = False
    """True where the result stays in host memory (and so counts against the budget)."""

    lent: bool = False
    """True where that memory is the caller's, so that it does not count."""

    promise: Promise = "exactly once"
    """The promise for a job that is killed and resumed."""

    def held_bytes(self, spec: Spec) -> int:  # noqa: ARG002 - most hold nothing
        """Return the bytes of memory that a writer of this spec holds beside what it is given; the plan counts them."""
        return 0

    def __str__(self) -> str:
        return super().__str__() if self.bound else repr(self)

    def __repr__(self) -> str:
        return super().__repr__() if self.bound else f"<{type(self).__name__} {self.name or self.label}: no input yet>"

    def _repr_html_(self) -> str | None:
        return super()._repr_html_() if self.bound else None  # a notebook shows the text then

    @property
    def bound(self) -> bool:
        """True where the destination has its input."""
        return bool(self.inputs)

    @property
    def input(self) -> Element:
        """The element whose value is written."""
        if not self.inputs:
            raise SpecError(
                "cannot run without an input",
                element=self.name,
                site=self.site,
                expected="a destination that has its input",
                hint="compose it: x >> destination",
            )
        return self.inputs[0]

    def bind(self, element: Element) -> Destination:
        """Return a copy of this destination with `element` as its input."""
        bound = self._copy()
        bound.freeze_fields(inputs=(element,), spec=element.spec)
        self.accept(element.spec, element)
        return bound

    def accept(self, spec: Spec, element: Element) -> None:
        """Raise SpecError when a value of this spec cannot be written here; checked when composed."""

    @abstractmethod
    def open(self, spec: Spec) -> Writer:
        """Start writing a value of this spec (stream length as far as it is known by now)."""

    def join(self, spec: Spec, draft: str) -> Writer:
        """Open the result that another process has begun, to write a range of records into it.

        Args:
            spec: as for `open`.
            draft: what `Writer.lend` gave there.

        Returns:
            A writer for any range, which ends with `suspend`.

        Raises:
            DestinationError: if there is no such result.
        """
        raise NotImplementedError(f"one process writes it: {spec} to {draft}")

    def open_at(self, spec: Spec, place: StagingArea) -> Writer:  # noqa: ARG002 - for those that keep something
        """Open the destination as `open` does, for a job that can be resumed."""
        return self.open(spec)

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> Writer:  # noqa: ARG002 - as above
        """Go on writing where a frozen job was; what was written after `state` is dropped.

        Raises:
            CheckpointError: if what was written is not there any more.
        """
        return self.open(spec)

    def recover(self, spec: Spec, place: StagingArea, state: State) -> Any:  # noqa: ARG002 - as above
        """Return the root's value of a finished job, of which `Writer.seal` gave the state.

        Raises:
            CheckpointError: if what was written is missing or was changed.
        """
        return None
