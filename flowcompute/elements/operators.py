"""Elements and the functions that compose them. `FUNCTIONS` is the table behind operators, methods and ufuncs."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowcompute.elements import (
    alignment,
    axes,
    compute,
    creation,
    fft,
    generated,
    linalg,
    math,
    nn,
    quantized,
    random,
    search,
    streams,
    training,
)
from flowcompute.elements.axes import concat, flip, permute_dims, reshape, stack, take
from flowcompute.elements.compute import Compute, Constant, as_element, cast
from flowcompute.elements.creation import conj
from flowcompute.elements.destination import Destination, Writer
from flowcompute.elements.element import Element, VerbSlot
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.functions import HostFunction, host
from flowcompute.elements.index import getitem
from flowcompute.elements.math import (
    ELEMENTWISE,
    TransposedStream,
    all,
    any,
    argmax,
    argmin,
    astype,
    bitwise_right_shift,
    clip,
    matmul,
    matrix_transposed,
    max,
    mean,
    min,
    pow,
    prod,
    std,
    sum,
    transposed,
    var,
    vecdot,
    where,
)
from flowcompute.elements.numpy_calls import call_numpy
from flowcompute.elements.op import Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.elements.source import AsyncReader, Reader, Source
from flowcompute.elements.streams import count_nonzero, cumulative_sum, describe, first, last
from flowcompute.errors import SpecError, SpecTypeError, short_repr


def compose_or_shift(left: Any, right: Any) -> Any:
    """Bind an unbound destination, `x >> destination`; anything else is the bitwise right shift."""
    if isinstance(right, Destination):
        if right.bound:
            raise SpecError(
                "cannot give a destination a second input",
                element=right.name or right.label,
                site=user_site(),
                expected="a destination without input",
            )
        if not isinstance(left, Element) and not right.takes_named:
            raise SpecTypeError(
                "cannot write what is no element",
                element=right.name or right.label,
                site=user_site(),
                expected="an element",
                got=short_repr(left),
                hint="fc.constant(value) is one; fc.table(streams) takes streams by name to a .parquet file, "
                "and a .safetensors file takes resident values by name",
            )
        return right.bind(left)
    if isinstance(right, str | os.PathLike) and isinstance(left, Element):
        raise SpecTypeError(
            "cannot compose with a path: `>>` takes a destination",
            element="compose",
            site=user_site(),
            expected="a destination",
            got=short_repr(right),
            hint=f'x >> fc.save("{os.fspath(right)}")',
        )
    if callable(right) and not isinstance(right, Element):
        raise SpecTypeError(
            "cannot compose with this",
            element="compose",
            site=user_site(),
            expected="a destination",
            hint="use x.pipe(function)",
        )
    return bitwise_right_shift(left, right)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **ELEMENTWISE,
    "pow": pow,
    "clip": clip,
    "astype": astype,
    "sum": sum,
    "prod": prod,
    "mean": mean,
    "var": var,
    "std": std,
    "min": min,
    "max": max,
    "argmin": argmin,
    "argmax": argmax,
    "any": any,
    "all": all,
    "reshape": reshape,
    "permute_dims": permute_dims,
    "concat": concat,
    "stack": stack,
    "take": take,
    "flip": flip,
    "index": getitem,
    "first": first,
    "last": last,
    "where": where,
    "matmul": matmul,
    "vecdot": vecdot,
    "transpose": transposed,
    "matrix_transpose": matrix_transposed,
    "conj": conj,
    "count_nonzero": count_nonzero,
    "cumulative_sum": cumulative_sum,
    "describe": describe,
    "bitwise_right_shift": compose_or_shift,
}
"""Every function by its Array API name."""


def _records(room: types.ModuleType) -> Iterator[Op]:
    """Yield the records that a door or a file names: alone, as functions, or in a table."""
    for value in vars(room).values():
        several = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
        for one in several:
            record = one.op if isinstance(one, Function) else one
            if isinstance(record, Op) and record.rebuild is not None:
                yield record


RECORDS: dict[str, Op] = {
    op.kept_name: op
    for room in (
        compute,
        alignment,
        axes,
        creation,
        generated,
        linalg,
        math,
        nn,
        quantized,
        search,
        streams,
        training,
    )
    for op in _records(room)
}
"""Every operation that a kept job can hold, by its name there. What is found by that name is rebuilt by its record."""

_UFUNC_NAMES = {
    "absolute": "abs",
    "fabs": "abs",
    "conjugate": "conj",
    "power": "pow",
    "rint": "round",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
}
"""NumPy's own names of ufuncs where the Array API has another."""

_MAKES_FLOATS = {"fabs": by_ufunc(np.fabs), "rint": by_ufunc(np.rint)}
"""Ufuncs that make floats of integers, where the functions of other names keep these."""


def _apply(name: str, *operands: Any, **attrs: Any) -> Any:
    function = FUNCTIONS.get(_UFUNC_NAMES.get(name, name)) if isinstance(name, str) else None
    if not isinstance(name, str):
        raise SpecTypeError(
            "cannot apply a function to an element in this way",
            site=user_site(),
            got=short_repr(name),
            hint="fc.host(function, x) calls Python with each batch",
        )
    if function is None:
        raise SpecError(
            f"cannot compose numpy.{name}",
            element=name,
            site=user_site(),
            expected="a function of fc",
            hint="fc.host runs Python on batches",
        )
    if name in _MAKES_FLOATS:
        elements = [as_element(one, name) for one in operands]
        operands = tuple(cast(one, _MAKES_FLOATS[name](one.dtype)[0]) for one in elements)
    return function(*operands, **attrs)


Element.apply = _apply
Element.call_numpy = call_numpy

__all__ = [
    "FUNCTIONS",
    "RECORDS",
    "AsyncReader",
    "Compute",
    "Constant",
    "Destination",
    "Element",
    "Function",
    "HostFunction",
    "Reader",
    "Source",
    "TransposedStream",
    "VerbSlot",
    "Writer",
    "fft",
    "host",
    "linalg",
    "nn",
    "random",
]
