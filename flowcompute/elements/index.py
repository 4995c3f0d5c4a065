"""`element[key]`: basic indexing of item axes, one array of indices; masks, slices and positions of the stream."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from flowcompute.elements.alignment import ALONG
from flowcompute.elements.axes import INDEX, make_view, section, select, take
from flowcompute.elements.compute import Compute, Constant, as_element
from flowcompute.elements.element import Element
from flowcompute.elements.site import user_site
from flowcompute.elements.streams import first, last
from flowcompute.errors import SpecError, SpecIndexError, SpecTypeError, short_repr
from flowcompute.spec import BOOL, Spec, Stream, format_shape

Key = int | slice | Element | None
"""A key for one axis; None makes a new one."""


def getitem(element: Any, key: Any) -> Any:
    """Index `element[key]` as NumPy does; on the stream axis by masks, slices forwards and single positions.

    Raises:
        SpecError: for what cannot be indexed so, with a hint.
    """
    keys = _spelled_out(element, [_normal(one) for one in (key if isinstance(key, tuple) else (key,))])
    _check_arrays(keys)
    if not element.spec.is_stream:
        return _index(element, keys)
    along, *inside = keys
    if along is None:
        raise SpecError(
            "cannot insert an axis before the stream",
            element="index",
            site=user_site(),
            expected="a new axis behind axis 0",
            hint="x[:, None]",
        )
    if isinstance(along, slice):
        return _index(section(element, along.start, along.stop, along.step), inside)
    if isinstance(along, int):
        return _index(_record(element, along), inside)
    if along.dtype == BOOL:
        return _index(select(element, _along(along)), inside)
    raise SpecError(
        "cannot index a stream by an array of positions",
        element="index",
        site=user_site(),
        expected="slices, positions or a mask",
        got=f"indices {along.spec}",
        hint="write the stream to a file, and index that",
    )


# -- keys -----------------------------------------------------------------------------------


def _normal(key: Any) -> Any:
    """Return a key as one of `Key`, or the ellipsis."""
    if key is None or key is Ellipsis:
        return key
    if isinstance(key, slice):
        start, stop, step = (None if bound is None else _whole(bound) for bound in (key.start, key.stop, key.step))
        if step == 0:
            raise SpecError(
                "cannot slice by a step of 0", element="index", site=user_site(), expected="a step other than 0"
            )
        return slice(start, stop, step)
    if isinstance(key, list):
        key = as_element(key if key else np.empty(0, np.int64), "index")
    if isinstance(key, Constant) and key.ndim == 0:
        key = key.value[()]
    if isinstance(key, Element) or (isinstance(key, np.ndarray) and key.ndim):
        return as_element(key, "index")
    return _whole(key)


def _whole(key: Any) -> int:
    try:
        # Python's bools are integers; as an index NumPy gives them another meaning.
        if not isinstance(key, bool | np.bool_):
            return operator.index(key)
    except TypeError:
        pass
    raise SpecTypeError(
        "cannot index an axis by this key",
        element="index",
        site=user_site(),
        expected="an integer, a slice, None, or a vector of indices or bools",
        got=f"{type(key).__name__} {short_repr(key)}",
    )


def _spelled_out(element: Any, keys: list[Any]) -> list[Any]:
    """Return one key for each axis, new axes beside: the ellipsis and what was left out as full slices."""
    places = [position for position, key in enumerate(keys) if key is Ellipsis]
    if len(places) > 1:
        raise SpecError(
            "cannot place two ellipses in an index", element="index", site=user_site(), expected="at most one ellipsis"
        )
    # A mask takes as many axes as it has.
    named = sum(
        max(1, key.ndim) if isinstance(key, Element) and key.dtype == BOOL else key is not None and key is not Ellipsis
        for key in keys
    )
    if named > element.ndim:
        raise SpecIndexError(
            "cannot index so many axes",
            element="index",
            site=user_site(),
            expected=f"at most {element.ndim} for {element.spec}",
            got=str(named),
        )
    full = [slice(None)] * (element.ndim - named)
    place = places[0] if places else len(keys)
    return [*keys[:place], *full, *keys[place + bool(places) :]]


def _check_arrays(keys: list[Key]) -> None:
    """Refuse what NumPy pairs up or moves to the front when arrays meet arrays or integers."""
    arrays = [position for position, key in enumerate(keys) if isinstance(key, Element)]
    fixed = [position for position, key in enumerate(keys) if isinstance(key, int)]
    together = sorted(arrays + fixed)
    # Where a mask chooses records, its axis is the first one anyway.
    apart = arrays != [0] and together and together[-1] - together[0] >= len(together)
    if len(arrays) > 1 or (arrays and apart):
        raise SpecError(
            "cannot combine these keys",
            element="index",
            site=user_site(),
            expected="one array of indices, and integers only next to it",
            hint="index step by step: x[:, 0][:, [1, 2]]",
        )


# -- axes -----------------------------------------------------------------------------------


def _along(mask: Any) -> Any:
    """Return a mask as a stream: a resident one is cut along the stream."""
    if mask.spec.is_stream or mask.ndim != 1:
        return mask
    return Compute(ALONG, (mask,), Spec(BOOL, (), Stream(mask.spec.shape[0])))


def _record(element: Any, position: int) -> Any:
    """Return one record of a stream, as a resident value."""
    length = element.spec.length
    if position == -1 and length is None:
        return last(element)
    if length is not None and not -length <= position < length:
        raise SpecIndexError(
            "cannot find this record",
            element="index",
            site=user_site(),
            expected=f"{-length} to {length - 1}",
            got=short_repr(position),
        )
    begin = position if position >= 0 or length is None else position + length
    return first(section(element, begin, begin + 1, 1))


def _index(element: Any, keys: list[Key]) -> Any:
    """Index item axes; then take along the axis of an array of indices."""
    index: list[int | tuple[int, int, int] | None] = []
    shape: list[int] = []
    taken: tuple[int, Element] | None = None
    sizes = iter(element.spec.shape)
    for key in keys:
        if key is None:
            index.append(None)
            shape.append(1)
            continue
        size = next(sizes)
        if isinstance(key, int):
            index.append(_position(element, key, size))
            continue
        if isinstance(key, Element):
            taken = len(shape), _indices(element, key, size)
        places = range(*(slice(None) if isinstance(key, Element) else key).indices(size))
        index.append((places.start, len(places), places.step))
        shape.append(len(places))
    made = element
    if index != [(0, size, 1) for size in element.spec.shape]:
        made = make_view(INDEX, (element,), tuple(shape), index=tuple(index))
    if isinstance(element, Constant):
        made = Constant(element.value[tuple(slice(None) if isinstance(key, Element) else key for key in keys)])
    return made if taken is None else take(made, taken[1], axis=taken[0] + made.spec.is_stream)


def _position(element: Any, position: int, size: int) -> int:
    if not -size <= position < size:
        raise SpecIndexError(
            "cannot index outside the axis",
            element="index",
            site=user_site(),
            expected=f"{-size} to {size - 1} on an axis of {element.spec}",
            got=short_repr(position),
        )
    return position % size


def _indices(element: Any, key: Any, size: int) -> Any:
    """Return an array of indices; a mask known when composed as the positions where it is true."""
    if key.dtype != BOOL:
        return key
    if not isinstance(key, Constant) or key.spec.shape != (size,):
        raise SpecError(
            "cannot select numbers of items by this mask",
            element="index",
            site=user_site(),
            expected=f"bool{format_shape((size,))} for an axis of {element.spec}",
            got=str(key.spec),
        )
    return Constant(np.flatnonzero(key.value))
