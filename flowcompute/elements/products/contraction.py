"""Sums of products over shared axes. What is a product of matrices becomes one, also over the stream.

Values are multiplied two at a time, from the left. A label of a pair is in one of four places: in both and kept
(batch), in both and summed over (inner), or in one. A pair is then a stack of matrix products. The stream's label is
apart: kept, records are multiplied one by one; summed over, the product is a fold.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from flowcompute.elements.alignment import common_dtype
from flowcompute.elements.axes import diagonal, permute_dims, reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, cast
from flowcompute.elements.math import TransposedStream, matmul, multiply, permuted, vecdot
from flowcompute.elements.math import sum as sum_along
from flowcompute.elements.products.subscripts import Labelled, Labels, Product, read_axes, read_subscripts


@public
def einsum(subscripts: str, *operands: Operand | TransposedStream) -> Any:
    """Sum products of numbers over the axes whose letters the result has not, as `numpy.einsum`.

    A letter in two operands is one axis of both. Axis 0 of a stream has a letter, too. Where the result keeps it,
    records are multiplied one by one (`"ni,ij->nj"`). Otherwise the result is a fold (`"ni,nj->ij"`). Operands are
    multiplied two at a time, from the left, by `matmul` and `vecdot` where these multiply so, in their order of sums.

    Args:
        subscripts: letters for the axes of each operand, commas between them, and those of the result after `->`.
            Without `->` the result has the letters that stand once, in their order. An ellipsis stands for axes
            without letters, which are aligned from the last one. Sizes do not broadcast.
        operands: elements, arrays or transposed streams, not of bool.

    Returns:
        An element of the dtype that all promote to; a transposed stream where the stream is not its first axis.

    Raises:
        SpecError: if subscripts are malformed or do not fit, or axes 0 of two streams have different letters.
    """
    return _multiplied(read_subscripts(subscripts, operands))


@public
def tensordot(x1: Operand | TransposedStream, x2: Operand | TransposedStream, axes: Any = 2) -> Any:
    """Sum products over pairs of axes, as `numpy.tensordot`; see `einsum`.

    Args:
        x1, x2: elements, arrays or transposed streams, not of bool.
        axes: how many last axes of `x1` meet as many first ones of `x2`; or axes of `x1`, and those of `x2`.

    Returns:
        An element with the other axes of `x1` and then those of `x2`.

    Raises:
        SpecError: for axes out of range or of different size, or if records of two streams would meet in pairs.
    """
    return _multiplied(read_axes(x1, x2, axes))


def _multiplied(product: Product) -> Any:
    operands, stream = product.operands, product.stream
    dtype = common_dtype(product.op, [one.value for one in operands])
    values = [_once(Labelled(cast(one.value, dtype), one.labels)) for one in operands]
    made = values[0]
    for place, other in enumerate(values[1:], 2):
        later = {label for one in values[place:] for label in one.labels}
        made = _pair(made, other, later.union(product.output), stream)
    made = _summed(made, product.output)
    return permuted(made.value, tuple(made.labels.index(label) for label in product.output))


def _once(one: Labelled) -> Labelled:
    """Return a value in which each label stands once: where it stands again, the diagonal."""
    for label in one.labels:
        while one.labels.count(label) > 1:
            first = one.labels.index(label)
            again = one.labels.index(label, first + 1)
            rest = tuple(other for axis, other in enumerate(one.labels) if axis not in (first, again))
            one = Labelled(diagonal(one.value, 0, first, again), (*rest, label))
    return one


def _summed(one: Labelled, kept: Collection[str]) -> Labelled:
    """Sum over the labels that are not kept."""
    axes = tuple(axis for axis, label in enumerate(one.labels) if label not in kept)
    if not axes:
        return one
    labels = tuple(label for label in one.labels if label in kept)
    return Labelled(sum_along(one.value, axes, dtype=one.value.dtype), labels)


def _pair(a: Labelled, b: Labelled, kept: Collection[str], stream: str | None) -> Labelled:
    """Multiply two values, summed over the labels that are not kept."""
    a, b = _summed(a, {*kept, *b.labels}), _summed(b, {*kept, *a.labels})
    inner = tuple(label for label in a.labels if label in b.labels and label not in kept)
    batch = tuple(label for label in a.labels if label in b.labels and label in kept)
    if not (a.value.spec.is_stream or b.value.spec.is_stream):
        stream = None
    if stream in inner:
        return _folded(a, b, kept, batch, inner)
    return _mapped(a, b, batch, inner, stream)


def _folded(a: Labelled, b: Labelled, kept: Collection[str], batch: Labels, inner: Labels) -> Labelled:
    """Multiply two values and sum over the stream."""
    stream = (a if a.value.spec.is_stream else b).labels[0]
    if batch or len(inner) > 1:
        return _summed(_pair(a, b, {*kept, stream}, stream), kept)
    rows, columns = (_without(one.labels, stream) for one in (a, b))
    left = _grouped(a, (stream,), *([rows] if rows else []))
    right = left if b.value is a.value else _grouped(b, (stream,), *([columns] if columns else []))
    product = matmul(left.T if rows else left, right) if rows or columns else vecdot(left, right)
    return _split(product, (*rows, *columns), a, b)


def _mapped(a: Labelled, b: Labelled, batch: Labels, inner: Labels, stream: str | None) -> Labelled:
    """Multiply two values record by record, or two resident ones."""
    lead = () if stream is None else (stream,)
    batch = _without(batch, *lead)
    left, right = (_without(one.labels, *lead, *batch, *inner) for one in (a, b))
    if not inner:
        labels = (*lead, *batch, *left, *right)
        return Labelled(multiply(_spread(a, lead, labels), _spread(b, lead, labels)), labels)
    if not left and not right:
        return Labelled(vecdot(*(_stacked(one, lead, batch, inner) for one in (a, b))), (*lead, *batch))
    for rows, matrix, columns in ((a, b, right), (b, a, left)):
        # Rows times a matrix: records are the rows.
        if lead and lead[0] not in matrix.labels and set(rows.labels) == {*lead, *inner}:
            return _split(
                matmul(_grouped(rows, lead, inner), _grouped(matrix, inner, columns)), (*lead, *columns), a, b
            )
    product = matmul(_stacked(a, lead, batch, left, inner), _stacked(b, lead, batch, inner, right))
    return _split(product, (*lead, *batch, *left, *right), a, b)


def _without(labels: Labels, *others: str) -> Labels:
    return tuple(label for label in labels if label not in others)


def _grouped(one: Labelled, *groups: Labels) -> Any:
    """Return the value with one axis for each group of its labels; an empty group is an axis of size 1."""
    order = tuple(label for group in groups for label in group)
    value = permute_dims(one.value, tuple(one.labels.index(label) for label in order))
    sizes = dict(zip(one.labels, one.value.shape, strict=True))
    items = groups[value.spec.is_stream :]
    shape = tuple(math.prod(sizes[label] or 0 for label in group) for group in items)
    return reshape(value, (-1, *shape) if value.spec.is_stream else shape)


def _stacked(one: Labelled, lead: Labels, batch: Labels, *groups: Labels) -> Any:
    """Return the value with an axis for the stream's label if it has it, for each of `batch`, and for each group."""
    return _grouped(one, *((label,) for label in (*lead, *batch) if label in one.labels), *groups)


def _spread(one: Labelled, lead: Labels, labels: Labels) -> Any:
    """Return the value with an axis for each of these labels, of size 1 where it has not that label.

    What has not the stream's label has no axis for it either, and broadcasts along it.
    """
    own = tuple(label for label in labels if label in one.labels)
    value = permute_dims(one.value, tuple(one.labels.index(label) for label in own))
    wanted = labels if lead == own[: len(lead)] else _without(labels, *lead)
    return value if wanted == own else value[tuple(slice(None) if label in own else None for label in wanted)]


def _split(value: Any, labels: Labels, *parts: Labelled) -> Labelled:
    """Return a product with an axis for each of these labels again."""
    sizes = {label: size for one in parts for label, size in zip(one.labels, one.value.shape, strict=True)}
    lead = value.spec.is_stream
    items = tuple(sizes[label] for label in labels[lead:])
    return Labelled(reshape(value, (-1, *items) if lead else items), labels)
