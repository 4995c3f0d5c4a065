"""Streams from arrays in memory."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from flowcompute.elements import Element, Reader, Source, user_site
from flowcompute.errors import SpecError
from flowcompute.sources.file_source import check_position
from flowcompute.spec import Spec, Stream, instead_of, parse_dtype


def source(array: npt.ArrayLike, name: str | None = None) -> MemorySource:
    """Make a stream of an array in memory, along its axis 0.

    The array is referred to, not copied. It is read when the job runs, so changes made before then are seen.
    Changes made while the job runs may be seen or not.

    Args:
        array: any strides, any byte order, at least one axis.
        name: what plans and errors call it.

    Raises:
        SpecError: if it is a single number, or its dtype is not supported.
    """
    return MemorySource(array, name=name)


class MemorySource(Source):
    """An array as a stream along its axis 0, made by `source`."""

    array: np.ndarray

    def __init__(self, array: npt.ArrayLike, *, name: str | None = None) -> None:
        if isinstance(array, Iterator):
            raise SpecError(
                "cannot make a source of what is yielded one after the other",
                element=name,
                site=user_site(),
                expected="an array",
                got=type(array).__name__,
                hint="fc.iterate(iterable, shape=..., dtype=...)",
            )
        referred = _as_array(array, name)
        try:
            dtype = parse_dtype(referred.dtype)
        except TypeError as error:
            raise SpecError(str(error), element=name, site=user_site(), hint=instead_of(referred.dtype)) from None
        if referred.ndim == 0:
            raise SpecError(
                "cannot stream a single number: a source is a stream along axis 0",
                element=name,
                site=user_site(),
                expected="an array of at least one axis",
                got="shape ()",
                hint="fc.constant(value)",
            )
        super().__init__(Spec(dtype, referred.shape[1:], Stream(referred.shape[0])), name=name)
        self.freeze_fields(array=referred)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "source"

    @property
    def identity(self) -> tuple[object, ...]:
        """The array object, the address of its memory, and its shape, strides and dtype."""
        array = self.array
        return (id(array), array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str)

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers, or None when they are used in place."""
        if not self.array.flags.c_contiguous:
            return "the array is not C-contiguous"
        if not self.array.dtype.isnative:
            return f"the array is in the other byte order ({self.array.dtype.str})"
        if not self.array.flags.aligned:
            return "the array is not aligned"
        return None

    def flattened(self) -> Source | None:
        """Return a source of the numbers of a contiguous array, or None for another one."""
        if not self.array.flags.c_contiguous:
            return None
        twin = copy.copy(self)
        flat = self.array.reshape(-1)
        twin.freeze_fields(array=flat, spec=Spec(self.spec.dtype, (), Stream(len(flat))))
        return twin

    def open(self, *, position: int = 0, mapped: bool = True) -> MemoryReader:  # noqa: ARG002
        """Start reading at record `position`. `mapped` has no meaning for memory."""
        return MemoryReader(self, position)


class MemoryReader(Reader):
    """Reader of an array, which copies its records or gives views of them."""

    immediate = True

    def __init__(self, source: MemorySource, position: int) -> None:
        self.element = source.name or source.label
        check_position(position, len(source.array), element=self.element, site=source.site)
        self.position = position
        self._gives_views = source.must_read() is None
        self._array = source.array

    def read(self, out: np.ndarray) -> int:
        """Copy the next records; see `Reader.read`."""
        records = self._next(len(out))
        out[: len(records)] = records
        return len(records)

    def view(self, items: int) -> np.ndarray | None:
        """Return the next records in place; see `Reader.view`."""
        if not self._gives_views:
            return None
        records = self._next(items)
        records.flags.writeable = False
        return records

    def gather(self, records: np.ndarray, out: np.ndarray) -> bool:
        """Copy these records; see `Reader.gather`."""
        out[...] = self._array[records]
        return True

    def _next(self, items: int) -> np.ndarray:
        records = self._array[self.position : self.position + items]
        self.position += len(records)
        return records

    def close(self) -> None:
        """Drop the reference to the array."""
        self._array = self._array[:0]


def _as_array(array: npt.ArrayLike, name: str | None) -> np.ndarray:
    """Return the array itself where it is one, and otherwise a new one. Never make an array of objects.

    Arrays of other libraries in the memory of the host are taken by DLPack, without a copy.

    Raises:
        SpecError: if it is not an array of numbers.
    """
    if type(array) is np.ndarray:
        return array
    message = None
    if isinstance(array, Element):
        message = "cannot make a source of this: it is an element already"
    elif isinstance(array, np.ma.MaskedArray):
        message = "cannot make a source of a masked array: it would lose its mask. Fill it first with .filled(value)"
    elif (library := _lazy_library(array)) is not None:
        raise SpecError(
            f"cannot make a source of an array of {library}: it would be loaded whole",
            element=name,
            site=user_site(),
            expected="an array in memory",
            got=type(array).__name__,
            hint='fc.open(path, key="x") streams .zarr, .h5, .nc and others; np.asarray(array) loads it',
        )
    else:
        try:
            if not hasattr(array, "__array__") and isinstance(array, _OfDLPack):
                return np.from_dlpack(array)
            return np.asarray(array)
        except (BufferError, RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as error:
            message = f"cannot make a source of this: it is not an array of numbers: {error}"
    raise SpecError(message, element=name, site=user_site(), expected="an array", got=type(array).__name__)


@runtime_checkable
class _OfDLPack(Protocol):
    """An array that gives its memory by DLPack."""

    def __dlpack__(self, *, stream: None = None) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


_LAZY = frozenset(("dask", "h5py", "netCDF4", "xarray", "zarr"))


def _lazy_library(array: object) -> str | None:
    """Return the library of an array that NumPy would load from files or compute; None for another one."""
    libraries = (kind.__module__.partition(".")[0] for kind in type(array).__mro__)
    return next((library for library in libraries if library in _LAZY), None)
