"""Results handed to a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flowcompute.elements import Destination, StagingArea, State, Writer, user_site
from flowcompute.errors import RunError, SpecError
from flowcompute.sinks.unbound import UNBOUND
from flowcompute.spec import Spec


def callback(function: Callable[..., object], *, labels: bool = False, name: str | None = None) -> CallbackSink:
    """Call a function with each batch of the result, in the order of the records.

    Args:
        function: called as `function(array)` in a worker thread, one call at a time. Its value is ignored. The
            array is its own copy, to keep or change. The number of records in a batch depends on the plan. A
            resident result comes in one call, a single number as a NumPy scalar.
        labels: whether it is called as `function(array, delivery)`, where the `Delivery` tells which records
            come again after a job was killed and resumed.
        name: what plans and errors call it.

    Raises:
        SpecError: if `function` cannot be called, or is a coroutine function.
    """
    return CallbackSink(function, labels=labels, name=name)


class Delivery(NamedTuple):
    """Label of a callback's records, for functions that must not count records twice.

    A job that is killed and resumed may hand over records again, always from the first record of an epoch on. A
    function may keep the records of earlier epochs, and drop those of an epoch when its first record comes
    again. It then has every record once.

    Attributes:
        epoch: number of checkpoints that the job had passed before these records; 0 without `checkpoint=`.
        start: index of the first record.
    """

    epoch: int
    start: int


class CallbackSink(Destination):
    """A destination that calls a function with each batch, made by `callback`."""

    promise = "at least once"

    function: Callable[..., object]
    labels: bool

    def __init__(self, function: Callable[..., object], *, labels: bool = False, name: str | None = None) -> None:
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise SpecError(
                "cannot call this: fc.callback takes a plain function",
                element=name,
                site=user_site(),
                expected="a function of one array",
                got="a coroutine function" if callable(function) else type(function).__name__,
            )
        super().__init__(UNBOUND, name=name)
        self.freeze_fields(function=function, labels=labels)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "callback"

    def open(self, spec: Spec) -> CallbackWriter:
        """Start calling."""
        return CallbackWriter(self, spec, lambda: 0)

    def open_at(self, spec: Spec, place: StagingArea) -> CallbackWriter:
        """Start calling, with the epochs of a job that can be resumed."""
        return CallbackWriter(self, spec, place.epoch)

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> CallbackWriter:  # noqa: ARG002
        """Continue to call."""
        return CallbackWriter(self, spec, place.epoch)


class CallbackWriter(Writer):
    """Writer that calls the function. Its value is None.

    Attributes:
        element: name of the element in the plan, for errors.
    """

    def __init__(self, sink: CallbackSink, spec: Spec, epoch: Callable[[], int]) -> None:
        self.element = sink.name or sink.label
        self._function = sink.function
        self._labels = sink.labels
        self._spec = spec
        self._site = sink.site
        self._epoch = epoch

    def write(self, array: np.ndarray, start: int) -> None:
        """Call the function; see `Writer.write`.

        Raises:
            RunError: if the function raises, with its exception as the cause.
        """
        # The function gets a copy, since it may keep the array, and `array` is used again for the next batch.
        own: Any = array.copy()
        try:
            label = (Delivery(self._epoch(), start),) if self._labels else ()
            self._function(own[()] if own.ndim == 0 else own, *label)
        except Exception as error:
            raise RunError(
                f"cannot complete the callback: it raised {type(error).__name__}: {error}",
                element=self.element,
                site=self._site,
                records=None if self._spec.stream is None else (start, start + len(array)),
                hint="see the exception above, which is the cause",
            ) from error

    def commit(self) -> None:
        """Do nothing: the function has seen everything."""

    def abort(self) -> None:
        """Do nothing: the calls cannot be undone."""
