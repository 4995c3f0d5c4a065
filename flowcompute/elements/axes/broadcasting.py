"""Values made as large as each other: `broadcast_arrays`."""

from __future__ import annotations

from typing import Any

from flowcompute.elements.axes.shape import broadcast_to
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element
from flowcompute.elements.math import equal, logical_or, where


@public
def broadcast_arrays(*arrays: Operand) -> tuple[Any, ...]:
    """Broadcast values against one another, as `numpy.broadcast_arrays`; beside a stream all become streams.

    So `fc.broadcast_arrays(x, token)[1]` is a stream that has a resident value at each record of `x`.

    Args:
        arrays: any elements. A resident one of the rank of a stream is cut along it, one of lower rank is the same for
            each record.

    Returns:
        As many elements of one shape, each of its own dtype.

    Raises:
        SpecError: if shapes do not broadcast, or streams have different lengths.
    """
    elements: list[Any] = [as_element(array, "broadcast_arrays") for array in arrays]
    if not elements:
        return ()
    # What a function of two values does to shapes is what all of them become.
    common: Any = equal(elements[0], elements[0])
    for element in elements[1:]:
        common = logical_or(common, equal(element, element))
    return tuple(_like(element, common) for element in elements)


def _like(element: Any, common: Any) -> Any:
    if element.spec.shape == common.spec.shape and element.spec.is_stream == common.spec.is_stream:
        return element
    if common.spec.is_stream and not element.spec.is_stream:
        return where(common, element, element)
    return broadcast_to(element, (-1,) * common.spec.is_stream + common.spec.shape)
