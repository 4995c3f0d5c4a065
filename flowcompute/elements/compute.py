"""Computes and constants, operands as elements, and casts."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from flowcompute.elements.element import Element
from flowcompute.elements.op import Attrs, KeptOp, Kind, Op
from flowcompute.elements.pin import Pin, plain_name
from flowcompute.elements.pinning import stays_pinned
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import BOOL, Spec, Stream, instead_of, parse_dtype

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
                native = parse_dtype(array.dtype)
                if array.dtype.byteorder != native.byteorder:
                    # NumPy keeps a dtype that names the machine's own order, which equals one that does not.
                    array = array.astype(native, copy=False).view(native)
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
            hint = instead_of(getattr(value, "dtype", None))
            raise SpecTypeError(
                f"cannot make a constant: {error}", element=called, site=user_site(), hint=hint
            ) from error
        array.setflags(write=False)
        super().__init__(Spec(parse_dtype(array.dtype), array.shape), name=name)
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
        # As `freeze_fields`, for what each step of a `Trainer` makes dozens of.
        fields = self.__dict__
        fields["op"], fields["attrs"], fields["pin"], fields["again"] = op, dict(attrs or {}), None, False

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
            hint=_instead(operand) or error.hint,
        ) from error


def _instead(operand: object) -> str | None:
    """Return what stands for elements in a list or a tuple, as the pairs of complex numbers are; None for others."""
    if not isinstance(operand, list | tuple) or not any(isinstance(one, Element) for one in operand):
        return None
    return "fc.stack(values, axis=-1) joins elements; of a pair of complex numbers fc.hypot(*pair) is the magnitude"


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


def truth(element: Element) -> Element:
    """Cast `element` to bool: non-zero is true."""
    return cast(element, BOOL)
