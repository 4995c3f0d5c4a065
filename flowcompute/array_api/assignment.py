"""`x[key] = number`, as the element that `x` holds then: a choice between the number and what was there."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from flowcompute.elements import Constant, Element, user_site
from flowcompute.elements.math import where
from flowcompute.errors import SpecError, SpecIndexError, short_repr
from flowcompute.spec import BOOL


def with_number(element: Any, key: Any, number: Any) -> Any:
    """Return an element with one number at some places.

    Args:
        element: a stream or a resident value.
        key: a mask of its shape, or integers and slices; of a stream all records, then keys of items.
        number: a Python number, or an element without axes that promotes to the dtype of `element`.

    Raises:
        SpecError: for another key, more than one number, or a number of another dtype.
    """
    mask = _mask_of(element, key) if not isinstance(number, Element) or number.ndim == 0 else None
    made = None if mask is None else where(mask, number, element)
    if made is None or made.spec != element.spec:
        raise SpecError(
            "cannot assign to a part of a lazy array",
            element=element.name or element.base_name,
            site=user_site(),
            expected=f"x[key] = number of {element.dtype.name}, with a mask of the shape of x or keys of items",
            got=f"x[{short_repr(key)}] = {short_repr(number)}",
            hint="where(condition, values, x) takes values of any shape",
        )
    return made


def _mask_of(element: Any, key: Any) -> Any:
    """Return where a number is put, as bools; None for records of a stream, and for keys that are arrays."""
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) == 1 and isinstance(keys[0], Element) and keys[0].dtype == BOOL:
        return keys[0] if keys[0].shape == element.shape else None
    if not all(one is None or isinstance(one, int | slice | EllipsisType) for one in keys):
        return None
    stream = element.spec.is_stream
    if stream and not (keys and keys[0] in (Ellipsis, slice(None))):
        return None
    mask = np.zeros((1,) * stream + element.spec.shape, bool)
    try:
        mask[keys] = True
    except IndexError as error:
        raise SpecIndexError(
            f"cannot assign outside of the array: {error}",
            element=element.name or element.base_name,
            site=user_site(),
            expected=f"places of {element.spec}",
            got=short_repr(key),
        ) from error
    return Constant(mask[0] if stream else mask)
