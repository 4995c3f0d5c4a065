"""Blelloch's work-efficient scan, as textbooks have it: a tree of sums up, and a tree of what comes before down.

G. E. Blelloch, "Prefix sums and their applications" (1990). It adds 2 n times in 2 log2(n) steps that
are each parallel; kernels of `cumulative_sum` read and write once and are faster. An answer is
within log2(n) times half a unit in the last place of the sum of magnitudes.
"""

from __future__ import annotations

from typing import Any

from flowcompute.elements.axes import pad, reshape, stack
from flowcompute.elements.compute import Compute, cast
from flowcompute.elements.math import add, multiply, not_equal


def blelloch_sum(x: Any, axis: int, *, exclusive: bool) -> Compute:
    """Return running sums along an item axis (counted with the stream), in the dtype of `x`."""
    before = _before(x, axis)
    return before if exclusive else add(before, x)


def _before(x: Any, axis: int) -> Any:
    """Sum what comes before each number: pairs are added and scanned, and each pair's sum goes to both."""
    length = _size(x, axis)
    if length <= 1:
        # Zero, also where x is infinite or NaN.
        return multiply(cast(not_equal(x, x), x.dtype), 0)
    if length % 2:
        longer = pad(x, [(0, int(at == axis)) for at in range(x.ndim)])
        return _part(_before(longer, axis), axis, slice(0, length))
    left, right = _part(x, axis, slice(0, None, 2)), _part(x, axis, slice(1, None, 2))
    pair = _before(add(left, right), axis)
    both = stack([pair, add(pair, left)], axis=axis + 1)
    own = x.spec.shape
    return reshape(both, (-1, *own) if x.spec.is_stream else own)


def _part(x: Any, axis: int, part: slice) -> Any:
    return x[(*[slice(None)] * axis, part)]


def _size(x: Any, axis: int) -> int:
    return int(x.spec.shape[axis - x.spec.is_stream])
