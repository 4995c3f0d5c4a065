"""The array object of the standard: it holds a lazy element, and every operation makes a new one."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, Unpack

import numpy as np

from flowcompute.array_api.assignment import assigned
from flowcompute.array_api.promotion import Scalar, promoted
from flowcompute.elements import FUNCTIONS, user_site
from flowcompute.elements.arguments import NoValue
from flowcompute.elements.math import TransposedStream, normalise_axes, permuted
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.strategy import StartOptions

Results = TypeVar("Results")

DEVICE = "auto"
"""The only device that arrays have: where values are computed is chosen by `device=` of the verbs."""

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Versions of the standard that the namespace may be asked for; the last one is what it implements."""


_OPERANDS = (NoValue, bool, int, float, complex, np.ndarray, np.generic)
"""Types of operands that operators take or refuse by name."""


def _operator(name: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of a binary operator, by the function of the standard."""

    def method(self: LazyArray, other: LazyArray | Scalar, /) -> LazyArray:
        # What is neither may have an operator of its own, but would compare as unequal.
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return binary(name, other, self) if swapped else binary(name, self, other)

    return method


class LazyArray(NoValue):
    """A lazy array with the attributes and operators of the Python array API standard, made by `asarray`.

    Nothing is computed until `resolve`, or a verb of flowcompute, is given `element`. What would need the value
    before, as `bool(x)`, is refused. Elements never change: `x += y` makes a new array, and `x[mask] = 0` lets the
    array hold another element.
    """

    # NumPy's operators leave it to those below; its functions refuse.
    __array_ufunc__ = None

    def __init__(self, element: Any) -> None:
        self._element = element

    @property
    def element(self) -> Any:
        """The element that the array is: what flowcompute's functions and verbs take."""
        return self._element

    def resolve(self, **options: Unpack[StartOptions]) -> Any:
        """Run and give the value: a NumPy scalar or array. Options as of `fc.resolve`."""
        return self._element.resolve(**options)

    @property
    def name(self) -> str | None:  # type: ignore[override]
        """The name of its element; None without one."""
        return _held(self).name  # type: ignore[no-any-return]

    @property
    def base_name(self) -> str:
        """The name in errors of an array whose element has none."""
        return _held(self).base_name  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<LazyArray {self._element!r}>"

    # -- attributes -----------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the array, as in the namespace: `xp.float32`."""
        return self._element.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        """The one device of the namespace."""
        return DEVICE

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Sizes of the axes. The first one is None for a stream of unknown length."""
        return self._element.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """Number of axes, the stream included."""
        return len(self.shape)

    @property
    def size(self) -> int | None:
        """Numbers in the array; None for a stream of unknown length."""
        sizes = [size for size in self.shape if size is not None]
        return math.prod(sizes) if len(sizes) == self.ndim else None

    @property
    def T(self) -> LazyArray:  # noqa: N802 - the standard's name
        """The transpose of a matrix; of a stream of rows what `matmul` takes on its left.

        Raises:
            SpecError: if there are not two axes.
        """
        if self.ndim != 2:
            raise SpecError(
                "cannot transpose",
                element="T",
                site=user_site(),
                expected="two axes",
                got=str(self.shape),
                hint="permute_dims reorders any axes, mT the last two",
            )
        return self.mT

    @property
    def mT(self) -> LazyArray:  # noqa: N802 - the standard's name
        """The array with its last two axes exchanged.

        Raises:
            SpecError: if there are fewer than two axes.
        """
        return LazyArray(self._element.mT)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """Return the namespace that has the functions of the standard.

        Raises:
            SpecError: for a version that it does not implement.
        """
        if api_version is not None and not (isinstance(api_version, str) and api_version in VERSIONS):
            raise SpecError(
                "cannot take api_version=",
                element="__array_namespace__",
                site=user_site(),
                expected=f"None, or one of {', '.join(VERSIONS)}",
                got=short_repr(api_version),
            )
        return sys.modules[__name__.rpartition(".")[0]]

    def to_device(self, device: str, /, *, stream: None = None) -> LazyArray:
        """Return the array itself: there is one device.

        Raises:
            SpecError: for another device, or a stream of a device's driver.
        """
        check_device("to_device", device)
        if stream is not None:
            raise SpecError(
                "cannot take stream=", element="to_device", site=user_site(), expected="None", got=short_repr(stream)
            )
        return self

    # -- indexing -------------------------------------------------------------------------

    def __getitem__(self, key: Any, /) -> LazyArray:
        """Index by integers, slices, `...`, None, and an array of integers or of bools; see `fc.Element`."""
        return LazyArray(self._element[_plain(key)])

    def __setitem__(self, key: Any, value: LazyArray | Scalar, /) -> None:
        """Put a number at a mask of the array's shape, or values at integers and slices, but those of a stream.

        The array holds another element then; the one that it held, and arrays made of it, stay as they are.

        Raises:
            SpecError: for other places, or values that do not broadcast to them.
            SpecTypeError: if the values are of another kind than the array.
        """
        plain = operands_of("__setitem__", self, value)[1]
        self._element = assigned(self._element, _plain(key), plain)

    # -- interchange ----------------------------------------------------------------------

    def __dlpack__(self, /, **_: object) -> NoReturn:
        raise self.refuse("memory to export")

    def __dlpack_device__(self, /) -> NoReturn:
        raise self.refuse("memory to export")

    # -- operators ------------------------------------------------------------------------

    def __abs__(self, /) -> LazyArray:
        return unary("abs", self)

    def __neg__(self, /) -> LazyArray:
        return unary("negative", self)

    def __pos__(self, /) -> LazyArray:
        return unary("positive", self)

    def __invert__(self, /) -> LazyArray:
        return unary("bitwise_invert", self)

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _operator("floor_divide", swapped=True)
    __mod__, __rmod__ = _operator("remainder"), _operator("remainder", swapped=True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", swapped=True)
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", swapped=True)
    __and__, __rand__ = _operator("bitwise_and"), _operator("bitwise_and", swapped=True)
    __or__, __ror__ = _operator("bitwise_or"), _operator("bitwise_or", swapped=True)
    __xor__, __rxor__ = _operator("bitwise_xor"), _operator("bitwise_xor", swapped=True)
    __lshift__, __rlshift__ = _operator("bitwise_left_shift"), _operator("bitwise_left_shift", swapped=True)
    __rshift__, __rrshift__ = _operator("bitwise_right_shift"), _operator("bitwise_right_shift", swapped=True)
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")
    __hash__ = None  # type: ignore[assignment]


# -- arguments and results ------------------------------------------------------------------


def _held(array: LazyArray) -> Any:
    """Return the element that an array is, or is a transpose of."""
    return array.element.base if isinstance(array.element, TransposedStream) else array.element


def _plain(key: Any) -> Any:
    """Return a key, or several, with elements for arrays."""
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    return key.element if isinstance(key, LazyArray) else key


def element_of(op: str, x: Any) -> Any:
    """Return the element of an argument that is an array.

    Raises:
        SpecTypeError: if it is none.
    """
    if isinstance(x, LazyArray):
        return x.element
    raise _no_array(op, x, "an array of flowcompute.array_api")


def operand_of(op: str, x: Any) -> Any:
    """Return the element of an argument that is an array, or the Python number that it is."""
    if isinstance(x, LazyArray):
        return x.element
    if isinstance(x, bool | int):
        return x
    if isinstance(x, float):
        return float(x)  # NumPy's float64 is a Python float, too, but would not follow the arrays
    raise _no_array(op, x, "an array of flowcompute.array_api, or a Python number")


def _no_array(op: str, x: object, expected: str) -> SpecTypeError:
    return SpecTypeError(
        "cannot take this argument",
        element=op,
        site=user_site(),
        expected=expected,
        got=short_repr(x),
        hint="there are no complex dtypes"
        if isinstance(x, complex | np.complexfloating)
        else "asarray(x) makes an array",
    )


def elements_of(op: str, *arrays: Any) -> list[Any]:
    """Return the elements of arguments that are arrays, after checking that their dtypes promote.

    Raises:
        SpecTypeError: if they do not, or one is no array.
    """
    elements = [element_of(op, array) for array in arrays]
    promoted(op, *(element.dtype for element in elements))
    return elements


def operands_of(op: str, *operands: Any) -> list[Any]:
    """Return the operands as elements and Python numbers, after checking that their dtypes promote.

    Raises:
        SpecTypeError: if they do not, or one is neither.
    """
    plain = [operand_of(op, operand) for operand in operands]
    promoted(op, *(one if isinstance(one, bool | int | float) else one.dtype for one in plain))
    return plain


def in_arrays(result: Results) -> Results:
    """Return a named tuple of elements as one of arrays."""
    return result._make(map(LazyArray, result))  # type: ignore[attr-defined, no-any-return, call-overload]


def unary(op: str, x: LazyArray) -> LazyArray:
    """Apply a function of one array, by its name in the standard."""
    return LazyArray(FUNCTIONS[op](element_of(op, x)))


def binary(op: str, x1: LazyArray | Scalar, x2: LazyArray | Scalar) -> LazyArray:
    """Apply a function of two arrays, or an array and a Python number, by its name in the standard.

    Raises:
        SpecTypeError: if their dtypes do not promote.
    """
    read = elements_of if op == "matmul" else operands_of
    return LazyArray(FUNCTIONS[op](*read(op, x1, x2)))


def reduced(op: str, x: LazyArray, axis: Any, keepdims: Any, **options: Any) -> LazyArray:
    """Apply a reduction, by its name in the standard. Of a transposed stream it reduces where the axes stand."""
    element = element_of(op, x)
    if not isinstance(element, TransposedStream):
        return LazyArray(FUNCTIONS[op](element, axis, keepdims=keepdims, **options))
    base, order = element.base, element.axes
    axes = {order[one] for one in normalise_axes(op, base, axis)}
    made = FUNCTIONS[op](base, tuple(sorted(axes)), keepdims=keepdims, **options)
    kept = [one for one in range(base.ndim) if keepdims or one not in axes]
    return LazyArray(permuted(made, tuple(kept.index(one) for one in order if one in kept)))


def check_device(op: str, device: object) -> None:
    """Check the argument `device=`.

    Raises:
        SpecError: for anything but None and the one device.
    """
    if device is not None and not (isinstance(device, str) and device == DEVICE):
        raise SpecError(
            "cannot take device=",
            element=op,
            site=user_site(),
            expected=f"None or {DEVICE!r}",
            got=short_repr(device),
            hint="resolve(device=...) says where a run computes",
        )
