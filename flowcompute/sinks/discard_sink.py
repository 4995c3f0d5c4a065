"""Sink that drops its results."""

from __future__ import annotations

import numpy as np

from flowcompute.elements import Destination, Writer
from flowcompute.sinks.unbound import UNBOUND
from flowcompute.spec import Spec


def discard(*, name: str | None = None) -> DiscardSink:
    """Compute and drop the result, to time a job or for the effects of its host functions.

    Args:
        name: what plans and errors call it.
    """
    return DiscardSink(name=name)


class DiscardSink(Destination):
    """A destination that drops its input, made by `discard`."""

    takes_numbers = True
    takes_regions = True

    def __init__(self, *, name: str | None = None) -> None:
        super().__init__(UNBOUND, name=name)

    def open(self, spec: Spec) -> DiscardWriter:  # noqa: ARG002
        """Start dropping."""
        return DiscardWriter()

    def join(self, spec: Spec, draft: str) -> DiscardWriter:  # noqa: ARG002
        """Start dropping in another process."""
        return DiscardWriter()

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "discard"


class DiscardWriter(Writer):
    """Writer that drops its records. Its value is None."""

    immediate = True

    def write(self, array: np.ndarray, start: int) -> None:
        """Drop the records."""

    def write_numbers(self, array: np.ndarray, start: int) -> None:
        """Drop the numbers."""

    def lend(self) -> str:
        """Return the name of nothing."""
        return ""

    def filled(self, records: int) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Do nothing."""

    def commit(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""
