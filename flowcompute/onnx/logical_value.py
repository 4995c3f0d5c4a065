"""A value of a model as an element, whose stream axis may stand at any place.

Elements have the stream as axis 0. A model may move that axis: exported attention transposes the batch away and back.
So each value knows at which *logical* position its stream axis stands. Its element has the other axes in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import flowcompute.elements.axes as fc_axes
from flowcompute.elements import Compute, Constant, Element
from flowcompute.elements.creation import full_like
from flowcompute.elements.math import (
    add,
    astype,
    bitwise_and,
    bitwise_right_shift,
    bitwise_xor,
    subtract,
    where,
)
from flowcompute.imports import dataclass
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import MOST_KNOWN, Length, Records, Size, is_decided, known_array
from flowcompute.onnx.tensors import NarrowTensor

APART = "keep the batch axis apart in the model, or give resident arrays"


@dataclass(frozen=True)
class ScaledIntegers:
    """Integers that floats stand for.

    Attributes:
        whole: the 8-bit integers.
        scale: what they are multiplied by, less their zero point: a number, or a vector.
        zero: the zero point; None for 0.
        axis: the logical axis along which a vector lies; None for one number.
    """

    whole: Value
    scale: Value
    zero: Value | None
    axis: int | None


class Value:
    """A value between two nodes.

    Attributes:
        dtype: of its numbers.
        shape: logical sizes. That of the stream axis is a `Records` where the model takes any number of them. It is 1
            where the model takes one record, and the number that it takes otherwise.
        axis: the logical position of the stream axis, None for a resident value.
        integers: what its floats stand for exactly, where that is known.
    """

    integers: ScaledIntegers | None = None

    def __init__(
        self, dtype: np.dtype, shape: tuple[Size, ...], axis: int | None, element: Any, known: np.ndarray | None = None
    ) -> None:
        self.dtype, self.shape, self.axis = dtype, shape, axis
        self._element = element
        self._known = known

    @classmethod
    def of(cls, element: Any, axis: int | None = None, records: Size = 1) -> Value:
        """Return the value of an element, whose stream stands at the logical position `axis`."""
        items = element.spec.shape
        if not element.spec.is_stream:
            return cls(element.dtype, items, None, element)
        at = axis or 0
        return cls(element.dtype, (*items[:at], records, *items[at:]), at, element)

    @classmethod
    def of_argument(cls, element: Any) -> Value:
        """Return the value of a resident argument. Views of it are computed when the model runs, not when composed."""
        known = cls.of(element).known
        return cls(element.dtype, element.spec.shape, None, astype(element, element.dtype), known)

    @classmethod
    def of_known(cls, known: Any, dtype: np.dtype) -> Value:
        """Return the value of numbers that are known when composed, perhaps but for the number of records."""
        array = known_array(known)
        return cls(dtype, array.shape, None, None, array)

    @property
    def ndim(self) -> int:
        """The number of logical axes."""
        return len(self.shape)

    @property
    def element(self) -> Any:
        """The element.

        Raises:
            Refusal: if its numbers hang on how many records there are.
        """
        if self._element is None:
            assert self._known is not None
            if not is_decided(self._known):
                raise Refusal(
                    "batch axis",
                    "the number of records is asked for as a number",
                    "give a resident array, or a model that takes one record at a time",
                )
            self._element = Constant(np.array(self._known.tolist(), self.dtype).reshape(self.shape))
        return self._element

    @property
    def has_element(self) -> bool:
        """Flag that there is an element, or its numbers are known."""
        return self._element is not None or (self._known is not None and is_decided(self._known))

    @property
    def known(self) -> np.ndarray | None:
        """Its numbers, where it has few and they are known when composed."""
        if self._known is None and isinstance(self._element, Constant) and self._element.value.size <= MOST_KNOWN:
            self._known = known_array(self._element.value)
        return self._known

    @property
    def records(self) -> Size:
        """The logical size of the stream axis."""
        assert self.axis is not None
        return self.shape[self.axis]

    def mark_made_by(self, name: str) -> None:
        """Let the element bear the name of the node that returned it, if that node made it."""
        made = self._element
        if isinstance(made, Compute) and made.call is not None and made.call.name == name and made.is_step:
            made.freeze_fields(is_step=False)

    def with_known(self, known: np.ndarray) -> Value:
        """Return the value with its numbers, as far as they are part of a shape."""
        return Value(self.dtype, self.shape, self.axis, self._element, known)

    # -- axes -----------------------------------------------------------------------------------------

    def normal(self, axis: int) -> int:
        """Return a logical axis as a position from 0 on.

        Raises:
            Refusal: if there is none.
        """
        if not -self.ndim <= axis < max(self.ndim, 1):
            raise Refusal("invalid", f"axis {axis} of a value with {self.ndim} axes", "correct the model")
        return axis % self.ndim if self.ndim else 0

    def normals(self, axes: Sequence[int]) -> tuple[int, ...]:
        """Return logical axes as positions from 0 on."""
        return tuple(self.normal(int(axis)) for axis in axes)

    def physical(self, axis: int) -> int:
        """Return the axis of the element that a logical one is."""
        if self.axis is None or axis > self.axis:
            return axis
        return 0 if axis == self.axis else axis + 1

    def item_axis(self, axis: int, doing: str) -> int:
        """Return the axis of the element that a logical one is, which must not be the stream.

        Raises:
            Refusal: if it is.
        """
        if axis == self.axis:
            raise Refusal("batch axis", f"{doing} axis {axis}, along which the records stand", APART)
        return self.physical(axis)

    def size(self, axis: int) -> int:
        """Return the size of a logical axis that is not the stream."""
        size = self.shape[axis]
        assert not isinstance(size, Records)
        return size

    def like(self, element: Any, axis: int | None = -1) -> Value:
        """Return the value of an element made of this one; `axis` is where its stream stands, by default as here."""
        at = self.axis if axis == -1 else axis
        return Value.of(element, at, self.records if self.axis is not None else 1)

    def batch_first(self, doing: str) -> Any:
        """Return the element, whose stream must stand first, and which must have axes.

        Raises:
            Refusal: if the stream stands elsewhere.
        """
        if self.axis not in (None, 0):
            raise Refusal("batch axis", f"{doing} a value whose records stand along axis {self.axis}", APART)
        return self.element

    def resident(self, what: str) -> Any:
        """Return the element, which must be resident.

        Raises:
            Refusal: if it is a stream.
        """
        if self.axis is not None:
            raise Refusal("batch axis", f"{what} is a stream", f"give {what} as a resident array")
        return self.element

    def numbers(self, what: str) -> np.ndarray:
        """Return its numbers, which must be known when composed.

        Raises:
            Refusal: if they are not.
        """
        if self.known is None:
            raise Refusal(
                "unknown",
                f"{what} is not known when the graph is composed",
                f"make {what} a constant, or give an array",
            )
        return self.known

    def wholes(self, what: str) -> tuple[Any, ...]:
        """Return its numbers, which must be known integers; each may be a `Records`."""
        return tuple(self.numbers(what).reshape(-1).tolist())

    def ints(self, what: str) -> tuple[int, ...]:
        """Return its numbers, which must be known integers that do not hang on the number of records."""
        found = self.numbers(what)
        if not is_decided(found):
            raise Refusal("batch axis", f"{what} hangs on the number of records", APART)
        return tuple(int(one) for one in found.reshape(-1))


class NarrowIntegers(Value):
    """Weights of 2 or 4 bits, which no element is of: whatever asks for their dtype or their element is refused.

    Attributes:
        wide: the same numbers as 8-bit integers, made of the packed bytes when the model runs.
    """

    def __init__(self, tensor: NarrowTensor) -> None:
        # No `Value.__init__`: there is no dtype, nor are there numbers that are known.
        self.shape, self.axis, self._element, self._known = tensor.shape, None, None, None
        self._tensor = tensor

    @property
    def has_element(self) -> bool:
        """Flag that it hangs on nothing."""
        return True

    @property
    def element(self) -> NoReturn:
        """No element.

        Raises:
            Refusal: always.
        """
        raise self._refusal()

    def __getattr__(self, name: str) -> NoReturn:
        raise self._refusal() if name == "dtype" else AttributeError(name)

    def _refusal(self) -> Refusal:
        text = f"numbers of {self._tensor.bits} bits, which only DequantizeLinear takes"
        return Refusal("dtype", text, "export the model with a DequantizeLinear of these weights themselves")

    @property
    def wide(self) -> Value:
        """The numbers as int8 or uint8."""
        bits, packed = self._tensor.bits, self._tensor.packed
        mask = np.uint8((1 << bits) - 1)
        parts = [bitwise_and(bitwise_right_shift(packed, np.uint8(low)), mask) for low in range(0, 8, bits)]
        made: Any = fc_axes.reshape(fc_axes.stack(parts, axis=1), (-1,))[: math.prod(self._tensor.shape)]
        if self._tensor.signed:
            sign = np.int8(1 << (bits - 1))
            made = subtract(bitwise_xor(astype(made, "int8"), sign), sign)
        return Value.of(fc_axes.reshape(made, self._tensor.shape))


def element_of_length(size: Length) -> Any:
    """Return a length as a resident integer."""
    return add(size.rows, size.more) if size.more else size.rows


# -- several values together --------------------------------------------------------------------------


class StreamPlace:
    """Place of the stream of a result.

    Attributes:
        axis: the logical position, None where nothing is a stream.
        records: the logical size of the stream axis.
    """

    def __init__(self, axis: int | None, records: Size) -> None:
        self.axis, self.records = axis, records

    def value(self, element: Any) -> Value:
        """Return the value of an element in this layout."""
        return Value.of(element, self.axis, self.records)


def lined_up(values: Sequence[Value]) -> tuple[list[Any], StreamPlace]:
    """Return elements that broadcast as the logical values do, and the layout of the result.

    Raises:
        Refusal: if streams stand at different places, or records would meet several numbers each.
    """
    rank = max((value.ndim for value in values), default=0)
    streams = [value for value in values if value.axis is not None]
    if not streams:
        return [value.element for value in values], StreamPlace(None, 1)
    places = {value.axis + rank - value.ndim for value in streams if value.axis is not None}
    if len(places) > 1:
        raise Refusal("batch axis", f"streams meet whose records stand along axes {sorted(places)}", APART)
    (at,) = places
    layout = StreamPlace(at, streams[0].records)
    return [_beside(value, rank, at, layout.records) for value in values], layout


def _beside(value: Value, rank: int, at: int, records: Size) -> Any:
    element = value.element
    missing = rank - value.ndim
    if value.axis is not None:
        return fc_axes.reshape(element, (-1, *(1,) * missing, *element.spec.shape)) if missing else element
    own = at - missing
    if own < 0:
        return element
    size = value.size(own)
    if size == 1:
        return fc_axes.squeeze(element, own)
    if not isinstance(records, Records) and records == 1:
        raise Refusal(
            "batch axis", f"a model for one record meets {size} of them", "export the model with a batch of any size"
        )
    element = fc_axes.moveaxis(element, own, 0) if own else element
    return fc_axes.reshape(element, (size, *(1,) * missing, *element.spec.shape[1:])) if missing else element


def together(function: Callable[..., Any], *values: Value) -> Value:
    """Apply an element-wise function, whose operands broadcast as NumPy's."""
    elements, layout = lined_up(values)
    return layout.value(function(*elements))


def expanded(value: Value, rank: int) -> Value:
    """Return a value with as many logical axes: new ones stand first."""
    missing = rank - value.ndim
    if missing <= 0:
        return value
    lead = (1,) * missing
    if value.axis is None:
        return Value.of(fc_axes.reshape(value.element, (*lead, *value.element.spec.shape)))
    return value.like(fc_axes.reshape(value.element, (-1, *lead, *value.element.spec.shape)), value.axis + missing)


def repeated_beside(resident: Any, stream: Element) -> Any:
    """Return a resident value as a stream that advances with another one, each record the whole value."""
    one: Any = stream
    if stream.spec.shape:
        one = stream[(slice(None), *(slice(0, 1) for _ in stream.spec.shape))]
        if one.spec.item_numbers == 0:
            raise Refusal("missing", "a resident value beside records without numbers", "give a resident array")
        one = fc_axes.reshape(one, (-1,))
    rank = len(resident.spec.shape)
    there = full_like(one, True, dtype="bool")
    there = fc_axes.reshape(there, (-1, *(1,) * rank)) if rank else there
    return where(there, resident, resident)


def same_streams(values: Sequence[Value]) -> tuple[list[Value], StreamPlace]:
    """Return values of one rank as streams whose records stand at one place, or all as residents."""
    streams = [value for value in values if value.axis is not None]
    if not streams:
        return list(values), StreamPlace(None, 1)
    layout = StreamPlace(streams[0].axis, streams[0].records)
    at = layout.axis
    assert at is not None
    made = []
    for value in values:
        if value.axis is None:
            if value.ndim <= at or value.size(at) != 1:
                raise Refusal("batch axis", "a resident value with its own records meets a stream", APART)
            lifted = repeated_beside(fc_axes.squeeze(value.element, at), streams[0].element)
            made.append(layout.value(lifted))
        elif value.axis != at:
            raise Refusal("batch axis", f"streams meet whose records stand along axes {at} and {value.axis}", APART)
        else:
            made.append(value)
    return made, layout
