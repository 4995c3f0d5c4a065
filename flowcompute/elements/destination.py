"""Destinations: where data goes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from flowcompute.elements.element import Element
from flowcompute.errors import SpecError
from flowcompute.spec import Spec


class Writer(ABC):
    """An opened Destination: the only place where writing has state.

    Methods may block and are called from worker threads, one call at a time:
    `write` in record order without gaps, then exactly one of `commit` and `abort`.
    """

    immediate: bool = False
    """Whether `write` returns at once, so that it needs no worker thread."""

    @abstractmethod
    def write(self, array: np.ndarray, start: int) -> None:
        """Take records `start` to `start + len(array)`; a resident value arrives whole with start 0.

        The array is only valid during the call.

        Raises:
            DestinationError: if it cannot be written.
        """

    def buffer(self, start: int, stop: int) -> np.ndarray | None:  # noqa: ARG002 - for those that lend memory
        """Memory for records `start` to `stop` that `write` would copy to, or None.

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

    def snapshot(self) -> dict[str, Any]:
        """What was written so far, as plain data."""
        return {}


class Destination(Element):
    """An element through which data goes out.

    Made unbound (`fc.save("y.npy")`) and bound to an input by `input >> destination`,
    which gives a new element and leaves the unbound one as it was.
    """

    takes_numbers: bool = False
    """Whether items may be written in parts, where they are too large for memory."""

    in_memory: bool = False
    """Whether the result stays in host memory (and so counts against the budget)."""

    @property
    def bound(self) -> bool:
        """Whether the destination has its input."""
        return bool(self.inputs)

    @property
    def input(self) -> Element:
        """The element whose value is written."""
        if not self.inputs:
            raise SpecError("has no input yet", element=self.name, site=self.site, hint="compose it: x >> destination")
        return self.inputs[0]

    def bind(self, element: Element) -> Destination:
        """A copy of this destination with `element` as its input."""
        bound = self._copy()
        bound.freeze_fields(inputs=(element,), spec=element.spec)
        self.accept(element.spec, element)
        return bound

    def accept(self, spec: Spec, element: Element) -> None:
        """Raise SpecError when a value of this spec cannot be written here; checked when composed."""

    @abstractmethod
    def open(self, spec: Spec) -> Writer:
        """Start writing a value of this spec (stream length as far as it is known by now)."""
