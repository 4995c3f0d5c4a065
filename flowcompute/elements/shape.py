"""Item axes seen in another way: indexing, reshaping, permuting, and values joined along item axes.

Most of these are index arithmetic inside kernels: nothing is copied. Axes are counted as
everywhere, the stream being axis 0, which stays where it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from flowcompute.elements.along import concat_streams, section, select
from flowcompute.elements.compute import ALONG, Compute, Constant, Operand, as_element, cast, common_length
from flowcompute.elements.element import Element
from flowcompute.elements.op import Kind, Op
from flowcompute.elements.reduce import normalise_axes
from flowcompute.elements.site import user_site
from flowcompute.elements.statistics import first, last
from flowcompute.errors import SpecError
from flowcompute.spec import BOOL, Spec, Stream, format_shape

Index = tuple[int | tuple[int, int, int] | None, ...]
"""For each item axis a position, or (first, count, step); None for a new axis."""


def _kept(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def _view(name: str, numpy: Callable[..., Any], arity: int = 1) -> Op:
    return Op(name, arity, Kind.VIEW, numpy, _kept, arithmetic=False)


INDEX = _view("index", np.asarray)
PERMUTE = _view("permute_dims", np.permute_dims)
RESHAPE = _view("reshape", np.reshape)
BROADCAST = _view("broadcast_to", np.broadcast_to)
TAKE = _view("take", np.take, 2)
STACK = _view("stack", np.stack, 2)
CONCAT = _view("concat", np.concat, 2)


def _make(op: Op, inputs: tuple[Element, ...], shape: tuple[int, ...], **attrs: Any) -> Compute:
    first_input = inputs[0]
    return Compute(op, inputs, Spec(first_input.dtype, shape, first_input.spec.stream), attrs)


def _item_axis(op: str, element: Any, axis: int) -> int:
    """An axis of the items (of the whole value when resident).

    Raises:
        SpecError: if it is the stream.
    """
    (normal,) = normalise_axes(op, element, axis)
    if not element.spec.is_stream:
        return normal
    if normal == 0:
        raise SpecError(
            "cannot change the order of the stream, which comes record by record",
            element=op,
            site=user_site(),
            expected=f"an axis from 1 to {element.ndim - 1}",
            got="axis 0, the stream",
        )
    return normal - 1


def getitem(element: Any, key: Any) -> Any:
    """`element[key]`: NumPy's basic indexing of item axes; masks, slices and positions of the stream.

    Raises:
        SpecError: for what cannot be indexed so, with a hint.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    if element.spec.is_stream and keys and _is_mask(keys[0]):
        chosen = select(element, _mask(keys[0]))
        return chosen if len(keys) == 1 else getitem(chosen, (slice(None), *keys[1:]))
    keys = _spelled_out(element, keys)
    if not element.spec.is_stream:
        return _index(element, keys)
    along, *inside = keys
    if along is None:
        raise SpecError(
            "a new axis cannot stand before the stream", element="index", site=user_site(), hint="x[:, None]"
        )
    if not isinstance(along, slice):
        return _record(element, along, inside)
    part = section(element, along.start, along.stop, along.step)
    return _index(part, inside)


def _is_mask(key: Any) -> bool:
    if isinstance(key, Element):
        return key.dtype == BOOL
    return isinstance(key, np.ndarray) and key.dtype == BOOL


def _mask(key: Any) -> Any:
    """A mask as a stream: a resident one is cut along the stream."""
    mask = as_element(key, "index")
    if mask.spec.is_stream or mask.ndim != 1:
        return mask
    return Compute(ALONG, (mask,), Spec(BOOL, (), Stream(mask.spec.shape[0])))


def _spelled_out(element: Any, keys: list[Any]) -> list[Any]:
    """One key for each axis, new axes beside: the ellipsis and what was left out as full slices."""
    places = [position for position, key in enumerate(keys) if key is Ellipsis]
    if len(places) > 1:
        raise SpecError("an index has one ellipsis at most", element="index", site=user_site())
    named = sum(key is not None and key is not Ellipsis for key in keys)
    if named > element.ndim:
        raise SpecError(
            "too many indices",
            element="index",
            site=user_site(),
            expected=f"at most {element.ndim} for {element.spec}",
            got=str(named),
        )
    full = [slice(None)] * (element.ndim - named)
    place = places[0] if places else len(keys)
    return [*keys[:place], *full, *keys[place + bool(places) :]]


def _record(element: Any, key: Any, inside: list[Any]) -> Any:
    """One record of a stream, as a resident value."""
    try:
        position = operator.index(key)
    except TypeError:
        raise SpecError(
            "a stream is indexed by slices, positions and masks",
            element="index",
            site=user_site(),
            got=type(key).__name__,
            hint="records in another order are no stream: write them to a file first",
        ) from None
    length = element.spec.length
    if position == -1 and length is None:
        return _index(last(element), inside)
    if length is not None and not -length <= position < length:
        raise SpecError(
            "there is no such record",
            element="index",
            site=user_site(),
            expected=f"{-length} to {length - 1}",
            got=str(position),
        )
    begin = position if position >= 0 or length is None else position + length
    return _index(first(section(element, begin, begin + 1, 1)), inside)


def _index(element: Any, keys: list[Any]) -> Any:
    """Basic indexing of item axes; an integer array or element takes along its axis."""
    fancy = [position for position, key in enumerate(keys) if isinstance(key, Element | np.ndarray | list)]
    if fancy:
        return _fancy(element, keys, fancy)
    if all(key == slice(None) for key in keys):
        return element
    index: list[int | tuple[int, int, int] | None] = []
    shape: list[int] = []
    sizes = iter(element.spec.shape)
    for key in keys:
        if key is None:
            index.append(None)
            shape.append(1)
            continue
        size = next(sizes)
        if isinstance(key, slice):
            places = range(*key.indices(size))
            index.append((places.start, len(places), places.step))
            shape.append(len(places))
        else:
            index.append(_position(element, key, size))
    if isinstance(element, Constant):
        return Constant(element.value[tuple(keys)])
    return _make(INDEX, (element,), tuple(shape), index=tuple(index))


def _position(element: Any, key: Any, size: int) -> int:
    try:
        position = operator.index(key)
    except TypeError:
        raise SpecError(
            "an axis is indexed by integers, slices and None",
            element="index",
            site=user_site(),
            got=type(key).__name__,
        ) from None
    if isinstance(key, bool | np.bool_) or not -size <= position < size:
        raise SpecError(
            "the index is out of range",
            element="index",
            site=user_site(),
            expected=f"{-size} to {size - 1} on an axis of {element.spec}",
            got=repr(key),
        )
    return position % size


def _fancy(element: Any, keys: list[Any], fancy: list[int]) -> Any:
    place = fancy[0]
    if len(fancy) > 1 or None in keys:
        raise SpecError(
            "takes one array of indices, and no new axes beside it",
            element="index",
            site=user_site(),
            hint="index step by step",
        )
    rest = [*keys[:place], slice(None), *keys[place + 1 :]]
    axis = sum(isinstance(key, slice) for key in rest[:place])
    return take(_index(element, rest), keys[place], axis=axis + element.spec.is_stream)


def reshape(x: Operand, shape: int | Sequence[int]) -> Any:
    """The value in another shape; of a stream the first size is its length, or -1, and items are reshaped.

    Raises:
        SpecError: if the numbers do not fit.
    """
    element = as_element(x, "reshape")
    wanted = [operator.index(size) for size in (shape if isinstance(shape, Iterable) else (shape,))]
    if element.spec.is_stream:
        if not wanted or wanted[0] not in (-1, element.spec.length):
            raise SpecError(
                "reshapes items; the stream stays as it is",
                element="reshape",
                site=user_site(),
                expected=f"a shape that begins with {element.spec.length or -1}",
                got=format_shape(tuple(wanted)),
                hint="fc.cut and fc.flatten reshape the stream",
            )
        wanted = wanted[1:]
    try:
        made = np.broadcast_to(np.empty(()), element.spec.shape).reshape(wanted).shape
    except ValueError:
        raise SpecError(
            "the numbers do not fit the shape",
            element="reshape",
            site=user_site(),
            expected=f"{element.spec.item_numbers} numbers as in {format_shape(element.spec.shape)}",
            got=format_shape(tuple(wanted)),
        ) from None
    if made == element.spec.shape:
        return element
    return Constant(element.value.reshape(made)) if isinstance(element, Constant) else _make(RESHAPE, (element,), made)


def permute_dims(x: Operand, axes: Sequence[int]) -> Any:
    """The value with its axes in another order; the stream stays axis 0.

    Raises:
        SpecError: if `axes` names not each axis once, or moves the stream.
    """
    element = as_element(x, "permute_dims")
    order = [operator.index(axis) for axis in axes]
    normal = [axis + element.ndim if axis < 0 else axis for axis in order]
    if sorted(normal) != list(range(element.ndim)):
        raise SpecError(
            "axes= names each axis once",
            element="permute_dims",
            site=user_site(),
            expected=f"an order of {tuple(range(element.ndim))}",
            got=str(tuple(order)),
        )
    if element.spec.is_stream:
        if normal[0] != 0:
            raise SpecError(
                "the stream stays axis 0",
                element="permute_dims",
                site=user_site(),
                got=str(tuple(order)),
                hint="x.T @ y is a fold over the stream",
            )
        normal = [axis - 1 for axis in normal[1:]]
    if normal == sorted(normal):
        return element
    if isinstance(element, Constant):
        return Constant(element.value.transpose(normal))
    return _make(PERMUTE, (element,), tuple(element.spec.shape[axis] for axis in normal), axes=tuple(normal))


def moveaxis(x: Operand, source: int, destination: int) -> Any:
    """The value with one axis elsewhere; see `permute_dims`."""
    element = as_element(x, "moveaxis")
    (old,), (new,) = normalise_axes("moveaxis", element, source), normalise_axes("moveaxis", element, destination)
    order = [axis for axis in range(element.ndim) if axis != old]
    order.insert(new, old)
    return permute_dims(element, order)


def flip(x: Operand, axis: int | tuple[int, ...] | None = None) -> Any:
    """The value backwards along item axes (all of them by default).

    Raises:
        SpecError: if that would turn the stream around.
    """
    element = as_element(x, "flip")
    every = tuple(range(1 if element.spec.is_stream else 0, element.ndim))
    named = every if axis is None else axis if isinstance(axis, tuple) else (axis,)
    turned = {_item_axis("flip", element, one) for one in named}
    lead = [slice(None)] * element.spec.is_stream
    keys = [slice(None, None, -1) if item in turned else slice(None) for item in range(len(element.spec.shape))]
    return getitem(element, (*lead, *keys))


def expand_dims(x: Operand, axis: int = 0) -> Any:
    """A new axis of size 1 at `axis` of the result; not before the stream."""
    element = as_element(x, "expand_dims")
    place = operator.index(axis)
    if not -element.ndim - 1 <= place <= element.ndim:
        raise SpecError(f"axis {place} is out of range", element="expand_dims", site=user_site(), got=str(element.spec))
    place = place + element.ndim + 1 if place < 0 else place
    return getitem(element, (*[slice(None)] * place, None))


def squeeze(x: Operand, axis: int | tuple[int, ...]) -> Any:
    """The value without axes of size 1.

    Raises:
        SpecError: if such an axis is longer, or the stream.
    """
    element = as_element(x, "squeeze")
    dropped = {_item_axis("squeeze", element, one) for one in (axis if isinstance(axis, tuple) else (axis,))}
    for one in dropped:
        if element.spec.shape[one] != 1:
            raise SpecError("only axes of size 1 can go", element="squeeze", site=user_site(), got=str(element.spec))
    keys: list[Any] = [0 if item in dropped else slice(None) for item in range(len(element.spec.shape))]
    return getitem(element, (*[slice(None)] * element.spec.is_stream, *keys))


def broadcast_to(x: Operand, shape: Sequence[int]) -> Any:
    """The value repeated to a shape by NumPy's rules; of a stream, `shape` is the item shape.

    Raises:
        SpecError: if it does not broadcast.
    """
    element = as_element(x, "broadcast_to")
    wanted = tuple(operator.index(size) for size in shape)
    try:
        np.broadcast_to(np.broadcast_to(np.empty(()), element.spec.shape), wanted)
    except ValueError:
        raise SpecError(
            "does not broadcast",
            element="broadcast_to",
            site=user_site(),
            expected=f"a shape that {format_shape(element.spec.shape)} broadcasts to",
            got=format_shape(wanted),
        ) from None
    return element if wanted == element.spec.shape else _make(BROADCAST, (element,), wanted)


def take(x: Operand, indices: Operand, axis: int | None = None) -> Any:
    """What stands at resident integer `indices` along an item axis, as `numpy.take`. Indices out of range are errors.

    Args:
        x: any element.
        indices: a resident vector of integers, negative ones counted from the end.
        axis: may be left out where there is one axis.

    Raises:
        SpecError: if the indices are known and out of range, no integers, or no resident vector.
    """
    element, where = as_element(x, "take"), as_element(indices, "take")
    if axis is None:
        axis = 0 if element.ndim == 1 else -1
    along = _item_axis("take", element, axis)
    if where.spec.is_stream or where.ndim != 1 or where.dtype.kind not in "iu":
        raise SpecError(
            "indices are a resident vector of integers", element="take", site=user_site(), got=str(where.spec)
        )
    size = element.spec.shape[along]
    if not isinstance(where, Constant):
        raise SpecError(
            "indices must be known when composed", element="take", site=user_site(), hint="fc.constant(indices)"
        )
    bad = where.value[(where.value < -size) | (where.value >= size)]
    if len(bad):
        raise SpecError(
            "an index is out of range",
            element="take",
            site=user_site(),
            expected=f"{-size} to {size - 1}",
            got=str(bad[0]),
        )
    shape = (*element.spec.shape[:along], len(where.value), *element.spec.shape[along + 1 :])
    return _make(TAKE, (element, where), shape, axis=along)


def _joined(op: str, values: Sequence[Operand]) -> list[Any]:
    """Values of one dtype, streams together."""
    elements = [as_element(value, op) for value in values]
    if not elements:
        raise SpecError("needs at least one value", element=op, site=user_site())
    dtype = np.result_type(*(element.dtype for element in elements))
    streams = [element for element in elements if element.spec.is_stream]
    if streams and len(streams) != len(elements):
        raise SpecError(
            "joins streams, or resident values, not both",
            element=op,
            site=user_site(),
            hint="stream * 0 + resident repeats a resident value along the stream",
        )
    return [cast(element, dtype) for element in elements]


def stack(values: Sequence[Operand], axis: int = 0) -> Any:
    """Values of equal shape along a new axis; of streams an item axis, so `axis` is not 0.

    Raises:
        SpecError: if shapes differ, or the axis would stand before the stream.
    """
    elements = _joined("stack", values)
    lead = elements[0]
    if any(element.spec.shape != lead.spec.shape for element in elements):
        raise SpecError(
            "stacks values of equal shape",
            element="stack",
            site=user_site(),
            got=" and ".join(format_shape(element.spec.shape) for element in elements),
        )
    ndim = lead.ndim + 1
    if not -ndim <= axis < ndim:
        raise SpecError(f"axis {axis} is out of range", element="stack", site=user_site(), expected=f"below {ndim}")
    along = axis % ndim - lead.spec.is_stream
    if along < 0:
        raise SpecError(
            "streams are stacked inside their items",
            element="stack",
            site=user_site(),
            expected=f"an axis from 1 to {ndim - 1}",
            got="axis 0, the stream",
            hint="fc.concat plays streams one after the other",
        )
    return _together(STACK, elements, (*lead.spec.shape[:along], len(elements), *lead.spec.shape[along:]), along)


def concat(values: Sequence[Operand], axis: int = 0) -> Any:
    """Values one after the other along an axis; along axis 0 streams are played one after the other.

    Raises:
        SpecError: if they differ in other axes.
    """
    elements = _joined("concat", values)
    lead = elements[0]
    if any(element.ndim != lead.ndim for element in elements) or lead.ndim == 0:
        raise SpecError(
            "joins values of equally many axes",
            element="concat",
            site=user_site(),
            got=" and ".join(str(element.spec) for element in elements),
        )
    (normal,) = normalise_axes("concat", lead, axis)
    if lead.spec.is_stream and normal == 0:
        return concat_streams(elements)
    along = normal - lead.spec.is_stream
    rest = {(*element.spec.shape[:along], *element.spec.shape[along + 1 :]) for element in elements}
    if len(rest) > 1:
        raise SpecError(
            "values differ in another axis than the one they are joined along",
            element="concat",
            site=user_site(),
            got=" and ".join(format_shape(element.spec.shape) for element in elements),
        )
    total = sum(element.spec.shape[along] for element in elements)
    return _together(CONCAT, elements, (*lead.spec.shape[:along], total, *lead.spec.shape[along + 1 :]), along)


def _together(op: Op, elements: list[Any], shape: tuple[int, ...], axis: int) -> Any:
    if all(isinstance(element, Constant) for element in elements):
        return Constant(op.numpy([element.value for element in elements], axis=axis))
    if not elements[0].spec.is_stream:
        return _make(op, tuple(elements), shape, axis=axis)
    stream = Stream(common_length(op.name, elements))
    return Compute(op, tuple(elements), Spec(elements[0].dtype, shape, stream), {"axis": axis})
