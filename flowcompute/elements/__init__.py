"""Elements and the functions that compose them. `FUNCTIONS` is the table behind operators, methods and ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowcompute.elements import arithmetic, linalg, logic, nn, random, reduce, shape, statistics, transcendental
from flowcompute.elements.compute import Compute, Constant, Function
from flowcompute.elements.destination import Destination, Writer
from flowcompute.elements.element import Element, VerbSlot
from flowcompute.elements.host import HostFunction, host
from flowcompute.elements.index import getitem
from flowcompute.elements.site import user_site
from flowcompute.elements.source import AsyncReader, Reader, Source
from flowcompute.elements.transposed import TransposedStream, matrix_transposed, transposed
from flowcompute.errors import SpecError


def compose_or_shift(left: Any, right: Any) -> Any:
    """`x >> destination` binds an unbound destination; anything else is the bitwise right shift."""
    if isinstance(right, Destination):
        if right.bound:
            raise SpecError(
                "this destination has its input already", element=right.name or right.label, site=user_site()
            )
        return right.bind(left)
    if callable(right) and not isinstance(right, Element):
        raise SpecError("`>>` takes a destination", element="compose", site=user_site(), hint="use x.pipe(function)")
    return logic.bitwise_right_shift(left, right)


def _public(module: Any) -> dict[str, Callable[..., Any]]:
    return {
        name: value for name, value in vars(module).items() if isinstance(value, Function) and value.op.name == name
    }


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_public(arithmetic),
    **_public(transcendental),
    **_public(logic),
    **{name: getattr(arithmetic, name) for name in ("pow", "clip", "astype")},
    **{name: getattr(reduce, name) for name in ("sum", "prod", "mean", "var", "std", "min", "max")},
    **{name: getattr(reduce, name) for name in ("argmin", "argmax", "any", "all")},
    **{name: getattr(shape, name) for name in ("reshape", "permute_dims", "concat", "stack", "take", "flip")},
    "index": getitem,
    "first": statistics.first,
    "last": statistics.last,
    "where": logic.where,
    "matmul": linalg.matmul,
    "vecdot": linalg.vecdot,
    "transpose": transposed,
    "matrix_transpose": matrix_transposed,
    "count_nonzero": statistics.count_nonzero,
    "bitwise_right_shift": compose_or_shift,
}
"""Every function by its Array API name."""

_UFUNC_NAMES = {
    "absolute": "abs",
    "fabs": "abs",
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


def _apply(name: str, *operands: Any, **attrs: Any) -> Any:
    function = FUNCTIONS.get(_UFUNC_NAMES.get(name, name))
    if function is None:
        raise SpecError(
            f"numpy.{name} has no lazy form", element=name, site=user_site(), hint="fc.host runs Python on batches"
        )
    return function(*operands, **attrs)


Element.apply = _apply

__all__ = [
    "FUNCTIONS",
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
    "host",
    "nn",
    "random",
]
