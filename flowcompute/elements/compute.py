"""Computes and constants, and how operands become one: promotion, broadcasting, weak scalars."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from flowcompute.elements.element import Element
from flowcompute.elements.op import Attrs, KeptOp, Kind, Op
from flowcompute.elements.pin import Pin, plain_name
from flowcompute.elements.pinning import stays_pinned
from flowcompute.elements.site import of_operands, user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import BOOL, Spec, Stream, format_shape, parse_dtype

Operand = Element | npt.ArrayLike
"""An operand of an operation: an element, a Python number (weak), or anything NumPy makes an array of."""

PLACED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.FOLD, Kind.SCAN, Kind.VIEW)
"""Kinds of operations that a device computes."""


class Constant(Element):
    """A resident value known when composed. `value` is its read-only array.

    It is a copy of what is given, but for an array that `fc.pinned` was asked to pin. Weights that cross a bus often so
    stay where they lie, and are not to be changed.
    """

    value: np.ndarray

    def __init__(self, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None, name: str | None = None) -> None:
        called = name if isinstance(name, str) else "constant"
        try:
            if isinstance(value, range):
                value = np.arange(value.start, value.stop, value.step)
            array = _kept_in_place(value, dtype)
            if array is None:
                array = np.array(value, dtype=None if dtype is None else parse_dtype(dtype), order="C", copy=True)
                if dtype is None:
                    array = array.astype(parse_dtype(array.dtype), copy=False)
        except SpecError:
            raise
        except MemoryError as error:
            raise SpecError(
                "cannot make a constant: there is no memory for it",
                element=called,
                site=user_site(),
                hint="fc.source(array) refers to an array without a copy",
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise SpecTypeError(f"cannot make a constant: {error}", element=called, site=user_site()) from error
        array.setflags(write=False)
        super().__init__(Spec(array.dtype, array.shape), name=name)
        self.freeze_fields(value=array)

    @property
    def identity(self) -> tuple[object, ...] | None:
        """Key that tells the value from others without reading it; None where only the numbers do."""
        return None

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that the value takes."""
        return self.value.nbytes

    def check(self) -> None:
        """Raise SourceError if what holds the value has changed since it was composed."""

    @property
    def label(self) -> str:
        """The number itself for a scalar."""
        return f"{self.value[()]!s}" if self.value.ndim == 0 else "constant"


def _kept_in_place(value: npt.ArrayLike, dtype: npt.DTypeLike | None) -> np.ndarray | None:
    """Return an array as it is, if it is pinned and has this dtype already."""
    if not isinstance(value, np.ndarray) or not value.flags.c_contiguous or not stays_pinned(value):
        return None
    same = parse_dtype(value.dtype if dtype is None else dtype) == value.dtype
    return value.view(np.ndarray) if same else None


class Compute(Element):
    """An operation: `op` is its record, `attrs` its plain data. One made `again` is not merged with the first one."""

    op: Op
    attrs: Attrs
    pin: Pin | None
    again: bool

    def __init__(
        self, op: Op, inputs: tuple[Element, ...], spec: Spec, attrs: Attrs | None = None, name: str | None = None
    ) -> None:
        super().__init__(spec, inputs, name)
        self.freeze_fields(op=op, attrs=dict(attrs or {}), pin=None, again=False)

    def on(self, device: str) -> Self:
        """Pin the value to a device of its own choice, whatever `device=` of the run says.

        With it goes what the same line of your program made for it alone, so `(x @ w).astype("float16").on("gpu:1")`
        is one pin for all three. What is not pinned is computed on the first device of the run that can. Beside a
        pinned one it is where fewer bytes cross from device to device. The plan says where each kernel runs and why.

        Pinned again, the last device holds: `(x * 2).on("cpu").on("numpy")` is computed by NumPy.

        Args:
            device: one device as `device=` names it: "cpu", "gpu", "gpu:1", "numpy", part of exactly one device's name,
                or "auto" for the best there is. It need not be among those of the run, and is found when planned.

        Returns:
            A new element; this one stays as it is.

        Raises:
            SpecError: if `device` is no text, or the operation is none that a device computes. Host functions,
                selections, windows and cuts of the stream are done on the host. Sources, constants and destinations
                have no `device` either. When it is planned: if an equal operation is pinned to another device, since
                both are computed once.
            PlanError: when it is planned, if there is no such device, or it cannot compute the operation.
        """
        if not isinstance(device, str) or not device.strip():
            raise SpecError(
                "cannot pin to this device",
                element=self.name or self.label,
                site=user_site(),
                expected='"cpu", "gpu:1", part of a name, or "numpy"',
                got=short_repr(device),
                hint="several devices are named by device= of the verbs; an operation is pinned to one",
            )
        if self.op.kind not in PLACED:
            raise SpecError(
                "cannot be pinned to a device",
                element=self.name or self.label,
                site=user_site(),
                expected=f"an operation of kind {', '.join(kind.value for kind in PLACED)}",
                got=f"kind {self.op.kind.value}, which the host does",
                hint="pin what computes its operands, or what is computed of it",
            )
        twin = copy.copy(self)
        twin.freeze_fields(pin=Pin(plain_name(device), user_site(), self if self.pin is None else self.pin.of))
        return twin

    @property
    def label(self) -> str:
        """The operation's name."""
        return self.op.name

    @property
    def base_name(self) -> str:
        """The function that its user called for it, or its label where that says more."""
        if self.call is None or self.is_step or self.label.startswith(self.call.name):
            return self.label
        return self.call.name


class Function:
    """A public element-wise function: calling it with operands builds a Compute of its record."""

    def __init__(self, op: Op) -> None:
        self.op = op if op.rebuild is not None else dataclasses.replace(op, rebuild=rebuild_elementwise)
        self.__name__ = op.name
        self.__doc__ = f"{op.doc} Element-wise; operands broadcast and promote as NumPy's."

    def __call__(self, *operands: Operand) -> Compute:
        """Build the Compute; raises SpecError when operands do not fit."""
        if len(operands) != self.op.arity:
            raise SpecError(
                "cannot take so many operands",
                element=self.op.name,
                site=user_site(),
                expected=f"{self.op.arity} operand{'s' if self.op.arity > 1 else ''}",
                got=str(len(operands)),
            )
        return of_operands(self.op.name, elementwise, self.op, *operands)

    def __repr__(self) -> str:
        return f"<function fc.{self.op.name}>"


def is_weak(operand: object) -> bool:
    """Check whether `operand` is a Python number, whose dtype follows its partners (NEP 50)."""
    return isinstance(operand, (bool, int, float)) and not isinstance(operand, np.generic)


def as_element(operand: Operand, op: str) -> Element:
    """Return `operand` as an element; arrays and strong scalars become constants.

    Raises:
        SpecError: if it is neither an element nor an array of a supported dtype.
    """
    if isinstance(operand, Element):
        if not hasattr(operand, "spec"):
            raise SpecError(
                "cannot compute with a destination without input",
                element=op,
                site=user_site(),
                expected="a destination that has its input",
            )
        return operand
    if isinstance(operand, complex | np.complexfloating):
        raise SpecError(
            "cannot compute with complex numbers",
            element=op,
            site=user_site(),
            expected="real numbers",
            got=short_repr(operand),
        )
    try:
        return Constant(operand)
    except SpecError as error:
        raise SpecTypeError(
            "cannot make an element of this operand",
            element=op,
            site=user_site(),
            expected="an element, or an array of a supported dtype",
            got=f"{type(operand).__name__}: {error.message}",
        ) from error


def elementwise(op: Op, *operands: Operand) -> Compute:
    """Build an element-wise Compute: find dtypes, cast operands, broadcast, share an operand's Spec that is equal."""
    elements = [None if is_weak(operand) else as_element(operand, op.name) for operand in operands]
    if all(element is None for element in elements):
        elements = [as_element(operand, op.name) for operand in operands]
    keys = [type(one) if element is None else element.dtype for one, element in zip(operands, elements, strict=True)]
    *wanted, result = resolve_dtypes(op, keys)
    inputs = [
        scalar_constant(op, operand, dtype) if element is None else cast(element, dtype)
        for operand, element, dtype in zip(operands, elements, wanted, strict=True)
    ]
    aligned, shape, stream = broadcast(op.name, inputs)
    spec = Spec(result, shape, stream)
    return Compute(op, tuple(aligned), next((one.spec for one in aligned if one.spec == spec), spec))


def rebuild_elementwise(kept: KeptOp) -> Compute:
    """Make an operation again by its record's rule of dtypes: the default of element-wise operations."""
    return elementwise(kept.op, *kept.operands(kept.op.arity))


def compute_again(
    kept: KeptOp, dtype: np.dtype, shape: tuple[int, ...], stream: Stream | None = None, attrs: Attrs | None = None
) -> Compute:
    """Make a Compute again whose function makes more than this operation, or chooses among several.

    Args:
        kept: the operation with its operands.
        dtype, shape, stream: the Spec that follows from them.
        attrs: its attributes, checked.
    """
    return Compute(kept.op, kept.inputs, Spec(dtype, shape, stream), attrs)


def resolve_dtypes(op: Op, keys: Iterable[Any]) -> tuple[np.dtype, ...]:
    """Return the dtypes that operands are cast to and that of the result.

    Raises:
        SpecError: if the op is not defined for them, or the result would be of an unsupported dtype.
    """
    keys = list(keys)
    try:
        return tuple(parse_dtype(dtype) for dtype in op.dtypes(*keys))
    except TypeError as error:
        names = ", ".join(key.name if isinstance(key, np.dtype) else f"Python {key.__name__}" for key in keys)
        raise SpecTypeError(
            "cannot compute with these dtypes",
            element=op.name,
            site=user_site(),
            expected="dtypes that it is defined for",
            got=names,
            hint=str(error).split("\n", 1)[0],
        ) from error


def scalar_constant(op: Op, value: Any, dtype: np.dtype) -> Constant:
    """Return a weak Python number in the dtype of its partners."""
    try:
        return Constant(value, dtype)
    except (OverflowError, ValueError) as error:
        raise SpecError(
            "cannot hold a Python number in the dtype of its partner",
            element=op.name,
            site=user_site(),
            expected=f"a value that {dtype.name} can hold",
            got=short_repr(value),
            hint="cast the other operand with .astype(...)",
        ) from error


def _never_called(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("casts have their dtype as an attribute")


def _rebuild_cast(kept: KeptOp) -> Compute:
    """Make a cast again, to any dtype, its own included."""
    x, dtype = kept.one(), kept.attrs.take("dtype")
    kept.require(isinstance(dtype, np.dtype), "a dtype")
    return as_operation(x, dtype)


CAST = Op(
    "astype", 1, Kind.ELEMENTWISE, np.astype, _never_called, arithmetic=False, doc="The value in another dtype.",
    rebuild=_rebuild_cast,
)  # fmt: skip


def cast(element: Element, dtype: np.dtype) -> Element:
    """Cast `element` to `dtype`; return the element itself when it already is."""
    if element.dtype == dtype:
        return element
    if isinstance(element, Constant) and not (element.dtype.kind == "f" and dtype.kind in "iu"):
        return Constant(element.value.astype(dtype))
    return as_operation(element, dtype)


def as_operation(element: Element, dtype: np.dtype) -> Compute:
    """Cast `element` by an operation, also where it is a constant or has that dtype already.

    A constant keeps its bytes, and is cast where it is used.
    """
    return Compute(CAST, (element,), Spec(dtype, element.spec.shape, element.spec.stream), {"dtype": dtype})


def _along_dtypes(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def _rebuild_along(kept: KeptOp) -> Compute:
    """Make a resident value that is cut along the stream again."""
    x = kept.one()
    kept.require(not x.spec.is_stream and x.ndim > 0, "a resident value with rows")
    return compute_again(kept, x.dtype, x.spec.shape[1:], Stream(x.spec.shape[0]))


ALONG = Op(
    "along", 1, Kind.ALONG, np.asarray, _along_dtypes, doc="A resident value cut along the stream.",
    rebuild=_rebuild_along,
)  # fmt: skip


def broadcast(op: str, inputs: list[Element]) -> tuple[list[Element], tuple[int, ...], Stream | None]:
    """Align operands as an array library would, the stream axis apart.

    A stream axis aligns only with a stream axis and never broadcasts. A resident value of lower rank broadcasts over
    items, one of equal rank is cut along the stream.

    Returns the (possibly wrapped) inputs, the item shape and the stream of the result.

    Raises:
        SpecError: naming both shapes, when they do not fit.
    """
    streams = [element for element in inputs if element.spec.is_stream]
    if not streams:
        return inputs, _broadcast_shapes(op, inputs), None
    first = streams[0]
    for other in streams[1:]:
        if other.ndim != first.ndim:
            raise SpecError(
                "cannot align streams of unequal rank",
                element=op,
                site=user_site(),
                expected=f"{first.ndim} axes as in {format_shape(first.shape)}",
                got=format_shape(other.shape),
                hint="reduce with keepdims=True (or index s[:, None]) so that item axes line up",
            )
    length = common_length(op, streams)
    aligned = [element if element.spec.is_stream else align_resident(op, element, first, length) for element in inputs]
    return aligned, _broadcast_shapes(op, aligned), first.spec.stream if length == first.spec.length else Stream(length)


def common_length(op: str, streams: list[Element]) -> int | None:
    """Return the one known length of streams that advance together; None if none is known."""
    known = [(stream, length) for stream in streams if (length := stream.spec.length) is not None]
    for other, length in known[1:]:
        first, wanted = known[0]
        if length != wanted:
            raise SpecError(
                "cannot align streams of different length",
                element=op,
                site=user_site(),
                expected=f"{wanted} records as in {_giver(first)}",
                got=f"{length} records in {_giver(other)}",
                hint=f"x[:{min(length, wanted)}] is as much of the longer one",
            )
    return known[0][1] if known else None


def _giver(stream: Element) -> str:
    """Name what gives a stream as many records as it has: its user's name, a file, or a function with its line."""
    while stream.name is None:
        before = [one for one in stream.inputs if one.spec.is_stream and one.spec.length == stream.spec.length]
        if not before:
            break
        stream = before[0]
    where = "" if stream.site is None else f" ({stream.site.short})"
    return stream.name or stream.origin or f"{stream.base_name}{where}"


def common_dtype(op: str, elements: Iterable[Any]) -> np.dtype:
    """Return the dtype that values which are joined promote to.

    Raises:
        SpecError: if NumPy has none for them, as for bfloat16 and an integer of 16 bits.
    """
    dtypes = [element.dtype for element in elements]
    try:
        return parse_dtype(np.result_type(*dtypes))
    except TypeError as error:
        raise SpecError(
            "cannot find a common dtype",
            element=op,
            site=user_site(),
            expected="dtypes that promote to one",
            got=", ".join(dtype.name for dtype in dtypes),
            hint='cast them to one with .astype("float32")',
        ) from error


def align_resident(op: str, resident: Element, stream: Element, length: int | None) -> Element:
    """Align a resident operand so that it broadcasts with items of the stream."""
    shape = resident.spec.shape
    if len(shape) < stream.ndim:
        return resident
    if len(shape) == stream.ndim and shape[0] == 1:
        # The largest of one number is that number: a way to drop an axis that needs no operation of its own.
        return Constant(resident.value[0]) if isinstance(resident, Constant) else Element.apply("max", resident, axis=0)
    if len(shape) == stream.ndim and shape[0] != 1 and (length is None or shape[0] == length):
        return Compute(ALONG, (resident,), Spec(resident.dtype, shape[1:], Stream(shape[0])))
    raise SpecError(
        "cannot align a resident operand with the stream",
        element=op,
        site=user_site(),
        expected=f"a shape that broadcasts with items {format_shape(stream.spec.shape)}",
        got=format_shape(shape),
    )


def _broadcast_shapes(op: str, inputs: list[Element]) -> tuple[int, ...]:
    shapes = [element.spec.shape for element in inputs]
    try:
        return max(shapes, key=len) if len(set(shapes) - {()}) <= 1 else np.broadcast_shapes(*shapes)
    except ValueError as error:
        streamed = any(element.spec.is_stream for element in inputs)
        raise SpecError(
            f"cannot broadcast {'item shapes' if streamed else 'shapes'}",
            element=op,
            site=user_site(),
            expected="equal sizes, or 1, on each axis counted from the last",
            got=" and ".join(format_shape(shape) for shape in shapes),
        ) from error


def truth(element: Element) -> Element:
    """Cast `element` to bool: non-zero is true."""
    return cast(element, BOOL)
