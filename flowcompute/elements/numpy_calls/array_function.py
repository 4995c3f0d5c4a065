"""The table behind `__array_function__` (NEP 18): what NumPy's functions mean for elements, with NumPy's arguments.

Each entry has the arguments of NumPy's function that make sense without an array, in NumPy's order. Calls with others
are refused by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.elements import axes, creation, fft, math, products, search, streams
from flowcompute.elements.arguments import FUNCTIONS
from flowcompute.elements.axes import permute_dims
from flowcompute.elements.numpy_calls.linalg_calls import LINALG_CALLS
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecTypeError


def _summing(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False) -> Any:
        return function(a, axis, dtype=dtype, keepdims=keepdims)

    return call


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, *, ddof: Any = 0, keepdims: Any = False, correction: Any = None) -> Any:
        return function(a, axis, correction=ddof if correction is None else correction, keepdims=keepdims)

    return call


def _reducing(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        return function(a, axis, keepdims=keepdims)

    return call


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = None) -> Any:
        return function(a, axis, keepdims=keepdims, initial=initial)

    return call


def _cumulative(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        return function(a, axis, dtype=dtype)

    return call


def _where(condition: Any, x: Any, y: Any) -> Any:
    return math.where(condition, x, y)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return math.clip(a, a_min if min is None else min, a_max if max is None else max)


def _round(a: Any, decimals: Any = 0) -> Any:
    return math.round(a, decimals=decimals)


def _astype(x: Any, dtype: Any, /) -> Any:
    return math.astype(x, dtype)


def _concatenate(arrays: Any, /, axis: Any = 0) -> Any:
    return axes.concat(arrays, axis)


def _stack(arrays: Any, axis: Any = 0) -> Any:
    return axes.stack(arrays, axis)


def _reshape(a: Any, /, shape: Any) -> Any:
    return axes.reshape(a, shape)


def _transpose(a: Any, axes: Any = None) -> Any:
    return math.transposed(a) if axes is None else permute_dims(a, axes)


def _take(a: Any, indices: Any, axis: Any = None) -> Any:
    return axes.take(a, indices, axis)


def _diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Any:
    return axes.diff(a, n, axis, prepend=prepend, append=append)


def _pad(array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> Any:
    return axes.pad(array, pad_width, mode, constant_values)


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, dtype: Any = None) -> Any:
        return function(a, dtype=dtype)

    return call


def _full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    return creation.full_like(a, fill_value, dtype=dtype)


def _unstack(x: Any, /, *, axis: Any = 0) -> Any:
    return axes.unstack(x, axis)


def _diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    return axes.diagonal(a, offset, axis1, axis2)


def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Any:
    return axes.trace(a, offset, axis1, axis2, dtype=dtype)


def _tril(m: Any, k: Any = 0) -> Any:
    return axes.tril(m, k)


def _triu(m: Any, k: Any = 0) -> Any:
    return axes.triu(m, k)


def _tile(A: Any, reps: Any) -> Any:  # noqa: N803 - NumPy's name
    return axes.tile(A, reps)


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return axes.roll(a, shift, axis)


def _outer(a: Any, b: Any) -> Any:
    return products.outer(a, b)


def _cross(a: Any, b: Any, *, axis: Any = -1) -> Any:
    return products.cross(a, b, axis)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    return products.tensordot(a, b, axes)


def _sort(a: Any, axis: Any = -1, *, stable: Any = None) -> Any:
    del stable  # it always is
    return search.sort(a, axis)


def _argsort(a: Any, axis: Any = -1, *, stable: Any = None) -> Any:
    del stable  # it always is
    return search.argsort(a, axis)


def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    return search.take_along_axis(arr, indices, axis)


def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    return search.searchsorted(a, v, side=side, sorter=sorter)


def _isin(element: Any, test_elements: Any, *, invert: Any = False) -> Any:
    return search.isin(element, test_elements, invert=invert)


def _nonzero(a: Any) -> Any:
    return search.nonzero(a)


def _nan_to_num(x: Any, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return math.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


_CALLS: dict[Any, Callable[..., Any]] = {
    np.sum: _summing(math.sum),
    np.prod: _summing(math.prod),
    np.mean: _reducing(math.mean),
    np.var: _spread(math.var),
    np.std: _spread(math.std),
    np.min: _extreme(math.min),
    np.max: _extreme(math.max),
    np.amin: _extreme(math.min),
    np.amax: _extreme(math.max),
    np.nansum: _summing(streams.nansum),
    np.nanmean: _reducing(streams.nanmean),
    np.nanvar: _spread(streams.nanvar),
    np.nanstd: _spread(streams.nanstd),
    np.nanmin: _reducing(streams.nanmin),
    np.nanmax: _reducing(streams.nanmax),
    np.nan_to_num: _nan_to_num,
    np.any: _reducing(math.any),
    np.all: _reducing(math.all),
    np.argmin: _reducing(math.argmin),
    np.argmax: _reducing(math.argmax),
    np.cumsum: _cumulative(streams.cumulative_sum),
    np.cumprod: _cumulative(streams.cumulative_prod),
    np.count_nonzero: _reducing(streams.count_nonzero),
    np.where: _where,
    np.clip: _clip,
    np.round: _round,
    np.around: _round,
    np.astype: _astype,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.reshape: _reshape,
    np.transpose: _transpose,
    np.moveaxis: axes.moveaxis,
    np.flip: axes.flip,
    np.expand_dims: axes.expand_dims,
    np.squeeze: axes.squeeze,
    np.broadcast_to: axes.broadcast_to,
    np.take: _take,
    np.repeat: axes.repeat,
    np.diff: _diff,
    np.pad: _pad,
    np.zeros_like: _like(creation.zeros_like),
    np.ones_like: _like(creation.ones_like),
    np.empty_like: _like(creation.empty_like),
    np.full_like: _full_like,
    np.real: creation.real,
    np.imag: creation.imag,
    np.result_type: creation.result_type,
    np.unstack: _unstack,
    np.tile: _tile,
    np.roll: _roll,
    np.matrix_transpose: axes.matrix_transpose,
    np.diagonal: _diagonal,
    np.trace: _trace,
    np.tril: _tril,
    np.triu: _triu,
    np.outer: _outer,
    np.cross: _cross,
    np.tensordot: _tensordot,
    np.einsum: products.einsum,
    np.sort: _sort,
    np.argsort: _argsort,
    np.take_along_axis: _take_along_axis,
    np.searchsorted: _searchsorted,
    np.isin: _isin,
    np.nonzero: _nonzero,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.fft.fftshift: fft.fftshift,
    np.fft.ifftshift: fft.ifftshift,
    **LINALG_CALLS,
}
"""The functions of NumPy that build the graph, or only ask for what is known."""

_COMPLEX = {f"fft.{name}": f"fc.fft.{name}, whose complex numbers are pairs" for name in fft.__all__}

_ELSE = "x.resolve() gives an array; fc.host runs NumPy on batches"


def call_numpy(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Build what a function of NumPy means for elements.

    Args:
        function: NumPy's own.
        args, kwargs: as it was called.

    Raises:
        SpecTypeError: if it has no meaning here, or not with these arguments.
        SpecError: as the function of `fc` behind it.
    """
    name = f"{function.__module__}.{function.__name__}"
    meant = _CALLS.get(function)
    if meant is None:
        own = name.removeprefix("numpy.").removeprefix("lib.stride_tricks.")
        known = FUNCTIONS.get(own) or _COMPLEX.get(own)
        raise SpecTypeError(
            f"cannot build {name} of a lazy element",
            element=function.__name__,
            site=user_site(),
            expected="a function that fc has, too",
            hint=f"use {known}" if known else _ELSE,
        )
    given = dict(kwargs)
    if given.pop("out", None) is not None:
        raise SpecTypeError(
            f"cannot give {name} an out= for a lazy element",
            element=function.__name__,
            site=user_site(),
            hint="x >> fc.to_array(out=array) fills an array when it runs",
        )
    try:
        bound = inspect.signature(meant).bind(*args, **given)
    except TypeError as error:
        raise SpecTypeError(
            f"cannot build {name} with these arguments",
            element=function.__name__,
            site=user_site(),
            expected=_words(meant),
            got=str(error),
        ) from error
    return meant(*bound.args, **bound.kwargs)


def _words(function: Callable[..., Any]) -> str:
    return f"arguments among {', '.join(inspect.signature(function).parameters)}"
