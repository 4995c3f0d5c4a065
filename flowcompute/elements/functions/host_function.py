"""Python functions as elements: `fc.host`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.alignment import common_length
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.functions.own_gradient import Gradient, checked_gradient
from flowcompute.elements.items import ItemShape, item_dtype, parse_item_shape
from flowcompute.elements.op import Kind, Op
from flowcompute.elements.policies import ErrorPolicy, OnError, parse_policy
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import Spec, Stream, parse_dtype


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("a host function declares its dtype")


HOST = Op("host", 1, Kind.HOST, np.asarray, _declared, cost=1000, doc="A Python function on batches.")
TRY_HOST = Op("try_host", 1, Kind.SELECT, np.asarray, _declared, cost=1000, doc="A Python function that may fail.")
"""A function that drops records gives a stream of unknown length: it is a selection, not a map."""


class HostFunction(Compute):
    """A Python function of batches. Never merged with another, never probed."""

    function: Callable[..., Any]
    policy: ErrorPolicy
    vjp: Gradient | None

    @property
    def label(self) -> str:
        """The function's own name."""
        return getattr(self.function, "__name__", "host")


def host(
    function: Callable[..., Any],
    *inputs: Operand,
    dtype: npt.DTypeLike | None = None,
    shape: ItemShape | None = None,
    on_error: OnError = "raise",
    dead_letter: str | os.PathLike[str] | None = None,
    name: str | None = None,
    vjp: Gradient | None = None,
) -> HostFunction:
    """Call a Python function with the batch arrays of its inputs, in record order.

    Args:
        function: takes one array `(items, *item)` for each stream input (the whole array for
            a resident one) and returns an array `(items, *shape)` of `dtype`. The arrays are
            only valid during the call and must not be written to.
        inputs: at least one element.
        dtype, shape: dtype and item shape (or item type) of the result; by default the first input's.
            They are declared, never found out by calling the function.
        on_error: what happens when the function raises, or returns something else than declared:

            - "raise" fails the run.
            - "skip" drops the records at which it fails, and counts and names them in
              `run.skipped` (and `flow.skipped`). Where a batch fails, the function is called
              again with parts of it, down to batches of one record. So it must treat records
              independently of each other and bear to be called twice.
            - "dead_letter" does the same and also writes each dropped record to a file.

            With one of the latter two the result is a stream of unknown length. It meets its own input, or another such
            stream, only where none dropped a record. What belongs together is best given to one function that returns
            it together.
        dead_letter: path of that file: a line of JSON for each dropped record, with `element`, `record`, `error`,
            `text` and the `inputs` at this record. Inputs of more than 64 numbers are null. What JSON has no number for
            is text: "nan", "inf", "-inf". The file is written while the run goes on, under a temporary name. It
            replaces an older file of its name at the end, also when the run fails, since it is needed most then. A run
            that is stopped leaves none. In a run that reads the stream in several passes each record has one line.
        name: name of the element.
        vjp: its gradient, for `fc.grad`: a function of the inputs and the cotangent of the result, all of them
            elements. It returns one cotangent of the shape of each input, or None for 0. It may call `fc.host` itself.

    Raises:
        SpecError: without inputs, when streams do not align, or when records are to be dropped
            but no input is a stream. Also if `vjp` cannot be called, or belongs to a function that drops records.
    """
    if not callable(function):
        raise SpecTypeError(
            "cannot call this",
            element=name or "host",
            site=user_site(),
            expected="a function",
            got=short_repr(function),
        )
    if not inputs:
        raise SpecError(
            "cannot run without an input", element=name or "host", site=user_site(), expected="at least one input"
        )
    policy = parse_policy(on_error, dead_letter, name or "host")
    elements = [as_element(operand, "host") for operand in inputs]
    streams = [element for element in elements if element.spec.is_stream]
    first = elements[0].spec
    stream = Stream(common_length("host", streams)) if streams else None
    if policy.drops:
        if stream is None:
            raise SpecError(
                "cannot drop records where no input is a stream",
                element=name or "host",
                site=user_site(),
                expected="a stream",
                got=str(first),
                hint="leave on_error='raise', and catch what the run raises",
            )
        if vjp is not None:
            raise SpecError(
                "cannot take vjp= where records are dropped",
                element=name or "host",
                site=user_site(),
                expected="on_error='raise'",
                got=f"on_error={on_error!r}",
                hint="return numbers for all records, and leave some out of the loss by fc.where",
            )
        stream = Stream(None)
    try:
        said = item_dtype(shape, dtype, name or "host")
        result = first.dtype if said is None else parse_dtype(said)
    except TypeError as error:
        raise SpecError(str(error), element=name or "host", site=user_site()) from error
    item = first.shape if shape is None else parse_item_shape(shape, name or "host")
    op = TRY_HOST if policy.drops else HOST
    element = HostFunction(op, tuple(elements), Spec(result, item, stream), name=name)
    gradient = None if vjp is None else checked_gradient(vjp, name or "host")
    element.freeze_fields(function=function, policy=policy, vjp=gradient)
    return element
