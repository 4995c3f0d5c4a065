"""Different numbers of a stream, and how often each comes: folds whose state is bounded by an argument."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flowcompute.elements.alignment import ALONG
from flowcompute.elements.arguments import whole
from flowcompute.elements.axes import reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.element import Element
from flowcompute.elements.math import greater
from flowcompute.elements.op import KeptOp, Op
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.statistics import fold_op, kept_size, make_fold
from flowcompute.errors import SpecError
from flowcompute.spec import INT64, Spec, Stream

MOST_DIFFERENT = 1 << 24
"""Different numbers of a stream: all of them are in memory."""


class UniqueCountsResult(NamedTuple):
    """Different numbers ascending, and how often each comes: streams of one length, known when they are computed."""

    values: Element
    counts: Element


def _rebuild_unique(kept: KeptOp) -> Compute:
    most = kept_size(kept)
    kept.require(most <= MOST_DIFFERENT, f"room for at most {MOST_DIFFERENT} numbers")
    return _fold(kept.op, kept.stream(), most)


UNIQUE_VALUES = fold_op("unique_values", np.unique_values, _rebuild_unique)
UNIQUE_COUNTS = fold_op("unique_counts", np.unique_counts, _rebuild_unique)


def _fold(op: Op, stream: Any, most: int) -> Compute:
    """Return the different numbers, or their counts, with zeros behind where there are fewer than `most`."""
    return make_fold(op, (stream,), (most,), stream.dtype if op is UNIQUE_VALUES else INT64)


def _along(x: Any) -> Compute:
    """Return a resident value as a stream of its rows."""
    return Compute(ALONG, (x,), Spec(x.dtype, x.spec.shape[1:], Stream(x.spec.shape[0])))


def _folds(op: str, x: Operand, max_values: Any) -> tuple[Compute, Compute]:
    """Return the different numbers and their counts, as streams of one clock; both have zeros behind."""
    element: Any = as_element(x, op)
    most = _bound(op, element, max_values)
    if not element.spec.is_stream:
        element = _along(reshape(element, (math.prod(element.spec.shape),)))
    return _along(_fold(UNIQUE_VALUES, element, most)), _along(_fold(UNIQUE_COUNTS, element, most))


def _bound(op: str, element: Any, max_values: Any) -> int:
    if max_values is not None:
        return whole(op, "max_values", max_values, 1, MOST_DIFFERENT)
    known: list[int] = [] if element.size is None else [element.size]
    if element.dtype.kind == "b":
        known.append(2)
    elif element.dtype.itemsize <= 2:
        known.append(1 << 8 * element.dtype.itemsize)
    if not known or min(known) > MOST_DIFFERENT or (element.spec.is_stream and element.dtype.itemsize > 2):
        raise SpecError(
            "cannot keep different numbers without a bound",
            element=op,
            site=user_site(),
            expected=f"max_values=, at most {MOST_DIFFERENT}",
            got=str(element.spec),
            hint="max_values= says how many numbers have room; where there are more, the run fails and says so",
        )
    return min(known)


@public
def unique_values(x: Operand, *, max_values: int | None = None) -> Element:
    """Return the different numbers, ascending. One fold keeps them while the stream passes.

    NaN counts as one number and is the last; -0 counts as 0.

    Args:
        x: a stream, all numbers of whose items count; or a resident value.
        max_values: how many different numbers have room. It may be left out for a resident value, and for dtypes of
            16 bits or fewer.

    Returns:
        A stream of numbers, whose length is known when it is computed.

    Raises:
        SpecError: without `max_values` where it is needed. More different numbers are a RunError.
    """
    values, counts = _folds("unique_values", x, max_values)
    return values[greater(counts, 0)]  # type: ignore[no-any-return]


@public
def unique_counts(x: Operand, *, max_values: int | None = None) -> UniqueCountsResult:
    """Return the different numbers, ascending, and how often each comes (int64).

    Arguments and errors are those of `unique_values`; results are streams of one length.
    """
    values, counts = _folds("unique_counts", x, max_values)
    there = greater(counts, 0)
    return UniqueCountsResult(values[there], counts[there])
