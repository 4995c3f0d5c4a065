"""`x[key] = value`, as the element that `x` holds then: a choice between the value and what was there."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from flowcompute.elements import Constant, Element, user_site
from flowcompute.elements.axes import broadcast_to, reshape, take
from flowcompute.elements.math import TransposedStream, where
from flowcompute.errors import SpecError, SpecIndexError, short_repr
from flowcompute.spec import BOOL

_BASIC = (int, slice, EllipsisType)


def assigned(element: Any, key: Any, value: Any) -> Any:
    """Return an element with a value at some places.

    Args:
        element: a stream or a resident value.
        key: a mask of its shape, for one number; or integers and slices, of a stream all records and keys of items.
        value: a Python number, or an element that promotes to the dtype of `element` and broadcasts to `x[key]`.

    Raises:
        SpecError: for another key, or a value that does not fit.
    """
    if isinstance(element, TransposedStream):
        return element[key]  # which it refuses
    keys = key if isinstance(key, tuple) else (key,)
    made = None
    if len(keys) == 1 and isinstance(keys[0], Element) and keys[0].dtype == BOOL:
        if keys[0].shape == element.shape and _is_number(value):
            made = where(keys[0], value, element)
    elif (places := _places(element, keys)) is not None and (element.spec.is_stream or not _is_stream(value)):
        made = where(Constant(places >= 0), _spread(value, places, _region(element, keys)), element)
    if made is None or made.spec != element.spec:
        raise SpecError(
            "cannot assign to a part of a lazy array",
            element=element.name or element.base_name,
            site=user_site(),
            expected=f"x[mask of the shape of x] = a number, or x[keys of items] = values, of {element.dtype.name}",
            got=f"x[{short_repr(key)}] = {short_repr(value)}",
            hint="where(condition, values, x) takes values of any shape",
        )
    return made


def _is_number(value: Any) -> bool:
    return not isinstance(value, Element) or value.ndim == 0


def _is_stream(value: Any) -> bool:
    return isinstance(value, Element) and value.spec.is_stream


def _region(element: Any, keys: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the item shape of what basic keys choose."""
    stream = element.spec.is_stream
    chosen: np.ndarray = np.broadcast_to(False, (1,) * stream + element.spec.shape)[keys]
    return chosen.shape[stream:]


def _places(element: Any, keys: tuple[Any, ...]) -> np.ndarray | None:
    """Return which of the chosen numbers each number of an item is, -1 for none; None for records, and for arrays."""
    # Python's bools are integers; as a key NumPy gives them another meaning.
    if not all(one is None or (isinstance(one, _BASIC) and not isinstance(one, bool)) for one in keys):
        return None
    stream = element.spec.is_stream
    if stream and not (keys and keys[0] in (Ellipsis, slice(None))):
        return None
    places = np.full((1,) * stream + element.spec.shape, -1)
    try:
        places[keys] = np.arange(places[keys].size).reshape(places[keys].shape)
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        raise SpecIndexError(
            f"cannot assign to these places: {error}",
            element=element.name or element.base_name,
            site=user_site(),
            expected=f"places of {element.spec}",
            got=short_repr(keys),
        ) from error
    return places[0] if stream else places


def _spread(value: Any, places: np.ndarray, region: tuple[int, ...]) -> Any:
    """Return a value with the numbers for a region at their places, and others where there are none."""
    if _is_number(value):
        return value
    lead = (-1,) * value.spec.is_stream
    if not places.size or places.max() < 0:
        return 0
    row = reshape(broadcast_to(value, (*lead, *region)), (*lead, places.max() + 1))
    return reshape(take(row, np.maximum(places, 0).ravel(), axis=-1), (*lead, *places.shape))
