"""The table of the standard's names: which are there, and why the others are not.

docs/array_api.md shows it; a test compares both with the namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from flowcompute.imports import dataclass

State = Literal["there", "refused"]


@dataclass(frozen=True)
class StandardName:
    """A name of the standard.

    Attributes:
        name: as in the namespace: "sum", "linalg.qr", or "x.T" of the array object.
        section: the chapter of the standard.
        state: "there", or "refused" for a reason.
        note: the reason, or what is particular here.
    """

    name: str
    section: str
    state: State
    note: str = ""


_COMPLEX = "there are no complex dtypes"
_LAZY = "a lazy array has no value before `resolve`"

_THERE: dict[str, str] = {
    "Array object: attributes": "x.T x.device x.dtype x.mT x.ndim x.shape x.size",
    "Array object: methods": "x.__abs__ x.__add__ x.__and__ x.__array_namespace__ x.__eq__ x.__floordiv__ x.__ge__ "
    "x.__getitem__ x.__gt__ x.__invert__ x.__le__ x.__lshift__ x.__lt__ x.__matmul__ x.__mod__ x.__mul__ x.__ne__ "
    "x.__neg__ x.__or__ x.__pos__ x.__pow__ x.__rshift__ x.__setitem__ x.__sub__ x.__truediv__ x.__xor__ x.to_device",
    "Constants": "e inf nan newaxis pi",
    "Creation functions": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones "
    "ones_like tril triu zeros zeros_like",
    "Data type functions": "astype can_cast finfo iinfo isdtype result_type",
    "Data types": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    "Element-wise functions": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift "
    "bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 "
    "floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 "
    "logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal "
    "positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc",
    "Indexing functions": "take take_along_axis",
    "Inspection": "__array_namespace_info__",
    "Linear algebra functions": "matmul matrix_transpose tensordot vecdot",
    "Manipulation functions": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat "
    "reshape roll squeeze stack tile unstack",
    "Searching functions": "argmax argmin count_nonzero nonzero searchsorted where",
    "Set functions": "unique_counts unique_values",
    "Sorting functions": "argsort sort",
    "Statistical functions": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "Utility functions": "all any diff",
    "Version": "__array_api_version__",
    "Extension linalg": "linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh "
    "linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose "
    "linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot "
    "linalg.trace linalg.vecdot linalg.vector_norm",
}

_REFUSED: dict[str, dict[str, str]] = {
    "Extension fft": {
        "fft.fft fft.fftn fft.hfft fft.ifft fft.ifftn fft.ihfft fft.irfft fft.irfftn fft.rfft fft.rfftn": _COMPLEX,
        "fft.fftfreq fft.fftshift fft.ifftshift fft.rfftfreq": "an extension is there as a whole or not at all",
    },
    "Array object: methods": {
        "x.__bool__ x.__complex__ x.__float__ x.__index__ x.__int__": f"{_LAZY}; the standard lets them raise",
        "x.__dlpack__ x.__dlpack_device__": f"{_LAZY}, and so no memory",
    },
    "Data types": {"complex64 complex128": _COMPLEX},
    "Set functions": {
        "unique_all unique_inverse": "places of values would be as long as the stream; `unique_counts` keeps values",
    },
}

_NOTES = {
    "arange": "resident; `asarray(fc.range(n))` is the stream",
    "asarray": "an element is wrapped; numbers and NumPy's arrays become resident constants",
    "x.__getitem__": "one array among the keys; masks choose records of a stream",
    "linalg.matrix_rank": "`rtol` is a Python number",
    "linalg.pinv": "`rtol` is a Python number",
    "empty": "zeros",
    "empty_like": "zeros",
    "nonzero": "streams, whose length is known when they are computed",
    "searchsorted": "the first array is resident",
    "sort": "along axes of items",
    "argsort": "along axes of items",
    "take_along_axis": "along axes of items",
    "unique_counts": "of streams only in dtypes of 16 bits or fewer; NaN counts as one number",
    "unique_values": "of streams only in dtypes of 16 bits or fewer; NaN counts as one number",
    "permute_dims": "of a stream that is moved for `matmul`, reductions and `resolve` only",
    "repeat": "a number of repeats, no array",
    "take": "along axes of items",
    "x.T": "of a stream of rows for `matmul`, reductions and `resolve` only",
    "x.__setitem__": "a number at a mask of the array's shape, or values at keys of items",
    "x.shape": "the first size is None for a stream of unknown length",
    "x.device": 'always `"auto"`: `resolve(device=...)` says where',
}


def _entries() -> Iterator[StandardName]:
    for section, names in _THERE.items():
        yield from (StandardName(name, section, "there", _NOTES.get(name, "")) for name in names.split())
    for section, reasons in _REFUSED.items():
        for names, reason in reasons.items():
            yield from (StandardName(name, section, "refused", reason) for name in names.split())


COVERAGE: dict[str, StandardName] = {
    entry.name: entry for entry in sorted(_entries(), key=lambda one: (one.section, one.name))
}
"""Every name of version 2024.12 of the standard."""
