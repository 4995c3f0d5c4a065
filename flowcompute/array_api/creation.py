"""Creation functions of the standard. What they make is resident, and known when composed; like a stream a stream."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flowcompute.array_api.array import LazyArray, check_device, element_of, elements_of
from flowcompute.elements import Constant, Element, axes, creation, math, user_site
from flowcompute.elements.arguments import dtype_of, one_of
from flowcompute.elements.math import TransposedStream
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import FLOAT64

Shape = int | tuple[int, ...]


def asarray(
    obj: LazyArray | Element | npt.ArrayLike,
    /,
    *,
    dtype: np.dtype | None = None,
    device: str | None = None,
    copy: bool | None = None,
) -> LazyArray:
    """Make an array of an element, which it holds, or of numbers, which become a resident constant.

    Args:
        obj: an array, an element (a stream or a resident value), Python numbers in nested sequences, or what NumPy
            takes as an array. `fc.source(array)` makes a stream instead.
        dtype: of the result; by default that of `obj`, int64 for Python's integers and float64 for its floats.
        device: None, or the one device.
        copy: False refuses what would be copied, which all memory of others is.

    Raises:
        SpecError: for copy=False where memory would be copied.
        SpecTypeError: for what is no array of a supported dtype.
    """
    check_device("asarray", device)
    held: Any = obj.element if isinstance(obj, LazyArray) else obj
    if isinstance(held, Element | TransposedStream):
        if dtype is not None and held.dtype != dtype_of("asarray", dtype):
            return LazyArray(math.astype(held, dtype))
        return obj if isinstance(obj, LazyArray) and not copy else LazyArray(held)
    if copy is False and not isinstance(obj, bool | int | float | list | tuple):
        raise _copies("asarray", obj)
    return LazyArray(Constant(obj, dtype))


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> LazyArray:
    """Make a resident constant of another library's array that NumPy can read by DLPack.

    Raises:
        SpecError: for copy=False, since it is copied.
        AttributeError, BufferError: what the other library raises.
    """
    check_device("from_dlpack", device)
    if isinstance(x, LazyArray):
        return x
    if copy is False:
        raise _copies("from_dlpack", x)
    return LazyArray(Constant(np.from_dlpack(x)))


def _copies(op: str, obj: object) -> SpecError:
    return SpecError(
        "cannot make an array without a copy",
        element=op,
        site=user_site(),
        expected="copy=None or True",
        got=f"copy=False for {type(obj).__name__}",
        hint="asarray(fc.source(array)) reads an array where it lies, as a stream",
    )


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: np.dtype | None = None,
    device: str | None = None,
) -> LazyArray:
    """Make evenly spaced numbers from `start` up to but without `stop`, as a resident constant.

    `asarray(fc.range(...))` makes them as a stream, which takes no memory.

    Args:
        start: first number; where the numbers end, if it is the only one.
        stop: where the numbers end.
        step: from one number to the next.
        dtype: int64 for whole numbers and float64 otherwise by default.
        device: None, or the one device.

    Raises:
        SpecTypeError: for what are no numbers, a step of 0, or a dtype that cannot hold them.
    """
    check_device("arange", device)
    wanted = None if dtype is None else dtype_of("arange", dtype)
    numbers: Any = (0, start, step) if stop is None else (start, stop, step)
    try:
        return LazyArray(Constant(np.arange(*numbers, dtype=wanted)))
    except (MemoryError, OverflowError, TypeError, ValueError, ZeroDivisionError) as error:
        raise SpecTypeError(
            f"cannot make these numbers: {error}",
            element="arange",
            site=user_site(),
            expected="finite numbers and a step other than 0",
            got=f"{short_repr(numbers[0])} to {short_repr(numbers[1])} by {short_repr(step)}",
            hint="asarray(fc.range(...)) makes a stream, which takes no memory",
        ) from error


def empty(shape: Shape, *, dtype: np.dtype | None = None, device: str | None = None) -> LazyArray:
    """Make zeros, since nothing can be written to an element; see `fc.empty`."""
    check_device("empty", device)
    return LazyArray(creation.empty(shape, FLOAT64 if dtype is None else dtype))


def empty_like(x: LazyArray, /, *, dtype: np.dtype | None = None, device: str | None = None) -> LazyArray:
    """Make zeros of the shape of `x`; see `fc.empty_like`."""
    check_device("empty_like", device)
    return LazyArray(creation.empty_like(element_of("empty_like", x), dtype))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: np.dtype | None = None, device: str | None = None
) -> LazyArray:
    """Make a matrix with ones on diagonal `k` and zeros elsewhere; see `fc.eye`."""
    check_device("eye", device)
    return LazyArray(creation.eye(n_rows, n_cols, k, FLOAT64 if dtype is None else dtype))


def full(shape: Shape, fill_value: float, *, dtype: np.dtype | None = None, device: str | None = None) -> LazyArray:
    """Make an array that has one number everywhere; see `fc.full`."""
    check_device("full", device)
    return LazyArray(creation.full(shape, fill_value, dtype))


def full_like(
    x: LazyArray, /, fill_value: float, *, dtype: np.dtype | None = None, device: str | None = None
) -> LazyArray:
    """Make an array of the shape of `x` that has one number everywhere; see `fc.full_like`."""
    check_device("full_like", device)
    return LazyArray(creation.full_like(element_of("full_like", x), fill_value, dtype))


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: np.dtype | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> LazyArray:
    """Make evenly spaced numbers from `start` to `stop`; see `fc.linspace`."""
    check_device("linspace", device)
    return LazyArray(creation.linspace(start, stop, num, dtype=dtype, endpoint=endpoint))


def ones(shape: Shape, *, dtype: np.dtype | None = None, device: str | None = None) -> LazyArray:
    """Make ones; see `fc.ones`."""
    check_device("ones", device)
    return LazyArray(creation.ones(shape, FLOAT64 if dtype is None else dtype))


def ones_like(x: LazyArray, /, *, dtype: np.dtype | None = None, device: str | None = None) -> LazyArray:
    """Make ones of the shape of `x`; see `fc.ones_like`."""
    check_device("ones_like", device)
    return LazyArray(creation.ones_like(element_of("ones_like", x), dtype))


def zeros(shape: Shape, *, dtype: np.dtype | None = None, device: str | None = None) -> LazyArray:
    """Make zeros; see `fc.zeros`."""
    check_device("zeros", device)
    return LazyArray(creation.zeros(shape, FLOAT64 if dtype is None else dtype))


def zeros_like(x: LazyArray, /, *, dtype: np.dtype | None = None, device: str | None = None) -> LazyArray:
    """Make zeros of the shape of `x`; see `fc.zeros_like`."""
    check_device("zeros_like", device)
    return LazyArray(creation.zeros_like(element_of("zeros_like", x), dtype))


def tril(x: LazyArray, /, *, k: int = 0) -> LazyArray:
    """Keep the lower triangles of matrices, and put 0 above diagonal `k`; see `fc.tril`."""
    return LazyArray(axes.tril(element_of("tril", x), k))


def triu(x: LazyArray, /, *, k: int = 0) -> LazyArray:
    """Keep the upper triangles of matrices, and put 0 below diagonal `k`; see `fc.triu`."""
    return LazyArray(axes.triu(element_of("triu", x), k))


def meshgrid(*arrays: LazyArray, indexing: Literal["xy", "ij"] = "xy") -> list[LazyArray]:
    """Return vectors as coordinates of a grid, each broadcast along the axes of the others.

    Args:
        arrays: resident vectors of one dtype kind; a stream may be the one along axis 0.
        indexing: "xy" has the first vector along axis 1 and the second one along axis 0, "ij" keeps their order.

    Raises:
        SpecError: for what are no vectors, or a stream along another axis.
    """
    swapped = one_of("meshgrid", "indexing", indexing, ("xy", "ij")) == "xy" and len(arrays) > 1
    vectors = elements_of("meshgrid", *arrays) if arrays else []
    along = [1, 0, *range(2, len(vectors))] if swapped else list(range(len(vectors)))
    placed = []
    for vector, axis in zip(vectors, along, strict=True):
        if vector.ndim != 1:
            raise SpecError(
                "cannot make a grid", element="meshgrid", site=user_site(), expected="vectors", got=str(vector.shape)
            )
        others = tuple(other for other in range(len(vectors)) if other != axis)
        placed.append(LazyArray(axes.expand_dims(vector, others) if others else vector))
    return broadcast_together("meshgrid", *placed)


def broadcast_together(op: str, *arrays: LazyArray) -> list[LazyArray]:
    """Broadcast arrays against one another; beside a stream all of them become streams.

    Raises:
        SpecError: if their shapes do not broadcast.
    """
    elements = [element_of(op, array) for array in arrays]
    return [LazyArray(one) for one in axes.broadcast_arrays(*elements)]
