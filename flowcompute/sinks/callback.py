"""Results handed to a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements.destination import Destination, Writer
from flowcompute.elements.site import user_site
from flowcompute.errors import RunError, Site, SpecError
from flowcompute.sinks.unbound import UNBOUND
from flowcompute.spec import Spec


def callback(function: Callable[[np.ndarray], object], *, name: str | None = None) -> CallbackSink:
    """Call a function with each batch of the result, in the order of the records.

    Args:
        function: called as `function(array)` in a worker thread, one call at a time; what it
            returns is ignored. The array is its own copy, to keep or change. How many records
            a batch has depends on the plan. A resident result comes in one call, a single
            number as a NumPy scalar.
        name: what plans and errors call it.

    Raises:
        SpecError: if `function` cannot be called, or is a coroutine function.
    """
    return CallbackSink(function, name=name)


class CallbackSink(Destination):
    """Calls a function with each batch; see `callback`."""

    function: Callable[[np.ndarray], object]

    def __init__(self, function: Callable[[np.ndarray], object], *, name: str | None = None) -> None:
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise SpecError(
                "fc.callback takes a plain function",
                element=name,
                site=user_site(),
                expected="a function of one array",
                got="a coroutine function" if callable(function) else type(function).__name__,
            )
        super().__init__(UNBOUND, name=name)
        self.freeze_fields(function=function)

    @property
    def label(self) -> str:
        """The function that made it."""
        return "callback"

    def open(self, spec: Spec) -> CallbackWriter:
        """Start calling."""
        return CallbackWriter(self.function, spec, self.name or self.label, self.site)


class CallbackWriter(Writer):
    """Calls the function; its value is None.

    Attributes:
        element: name of the element in the plan, for errors.
    """

    def __init__(self, function: Callable[[np.ndarray], object], spec: Spec, element: str, site: Site | None) -> None:
        self.element = element
        self._function = function
        self._spec = spec
        self._site = site

    def write(self, array: np.ndarray, start: int) -> None:
        """Call the function; see `Writer.write`.

        Raises:
            RunError: if the function raises, with its exception as the cause.
        """
        # A copy, since people keep what they are given, and `array` is used again for the next batch.
        own: Any = array.copy()
        try:
            self._function(own[()] if own.ndim == 0 else own)
        except Exception as error:
            raise RunError(
                f"the callback raised {type(error).__name__}: {error}",
                element=self.element,
                site=self._site,
                records=None if self._spec.stream is None else (start, start + len(array)),
                hint="see the exception above, which is the cause",
            ) from error

    def commit(self) -> None:
        """Nothing to do: the function has seen everything."""

    def abort(self) -> None:
        """Nothing to do: what the function has seen cannot be taken back."""
