"""Python functions as elements: `fc.host`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.compute import Compute, Operand, as_element, common_length
from flowcompute.elements.items import ItemShape, item_dtype, parse_item_shape
from flowcompute.elements.op import Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import Spec, Stream, parse_dtype


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("a host function declares its dtype")


HOST = Op("host", 1, Kind.HOST, np.asarray, _declared, cost=1000, doc="A Python function on batches.")


class HostFunction(Compute):
    """A Python function of batches. Never merged with another, never probed."""

    function: Callable[..., Any]

    @property
    def label(self) -> str:
        """The function's own name."""
        return getattr(self.function, "__name__", "host")


def host(
    function: Callable[..., Any],
    *inputs: Operand,
    dtype: npt.DTypeLike | None = None,
    shape: ItemShape | None = None,
    name: str | None = None,
) -> HostFunction:
    """A Python function called with the batch arrays of its inputs, in record order.

    Args:
        function: takes one array `(items, *item)` for each stream input (the whole array for
            a resident one) and returns an array `(items, *shape)` of `dtype`. The arrays are
            only valid during the call and must not be written to.
        inputs: at least one element.
        dtype, shape: dtype and item shape (or item type) of the result; by default the first input's.
            They are declared, never found out by calling the function.
        name: name of the element.

    Raises:
        SpecError: without inputs, or when streams do not align.
    """
    if not callable(function):
        raise SpecError("needs a function", element=name or "host", site=user_site(), got=repr(function))
    if not inputs:
        raise SpecError("needs at least one input", element=name or "host", site=user_site())
    elements = [as_element(operand, "host") for operand in inputs]
    streams = [element for element in elements if element.spec.is_stream]
    first = elements[0].spec
    stream = Stream(common_length("host", streams)) if streams else None
    try:
        said = item_dtype(shape, dtype, name or "host")
        result = first.dtype if said is None else parse_dtype(said)
    except TypeError as error:
        raise SpecError(str(error), element=name or "host", site=user_site()) from error
    item = first.shape if shape is None else parse_item_shape(shape, name or "host")
    element = HostFunction(HOST, tuple(elements), Spec(result, item, stream), name=name)
    element.freeze_fields(function=function)
    return element
