"""Axes with labels: the subscripts of `einsum` and the axes of `tensordot`, read strictly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from flowcompute.elements.arguments import several, whole
from flowcompute.elements.compute import as_element
from flowcompute.elements.math import TransposedStream, normalise_axes
from flowcompute.elements.op import MOST_AXES
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.imports import dataclass
from flowcompute.spec import BOOL, format_shape

Labels = tuple[str, ...]
"""A label for each axis. Axes of one label are one axis."""

MOST_OPERANDS = 32
"""Values that are multiplied together, two at a time."""


@dataclass(frozen=True)
class Labelled:
    """A value whose axes have labels; axis 0 of a stream has its first one."""

    value: Any
    labels: Labels


@dataclass(frozen=True)
class Product:
    """Values with labelled axes, and the labels of the axes of their product.

    Attributes:
        op: the function that multiplies, for errors.
        operands: the values.
        output: labels of the result. Over the others is summed.
        stream: the label of axis 0 of streams; None without any.
    """

    op: str
    operands: tuple[Labelled, ...]
    output: Labels
    stream: str | None


def read_subscripts(subscripts: Any, operands: Sequence[Any]) -> Product:
    """Return what subscripts say of these operands: letters, an ellipsis a term, commas, and perhaps `->` once.

    Raises:
        SpecTypeError: if they are no text.
        SpecError: if they are malformed, do not fit the operands, or multiply streams that do not advance together.
    """
    if not isinstance(subscripts, str):
        raise SpecTypeError(
            "cannot take subscripts=", element="einsum", site=user_site(), expected='text as "ni,ij->nj"',
            got=short_repr(subscripts),
        )  # fmt: skip
    words = subscripts.replace(" ", "")
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", words):
        raise _malformed(subscripts, 'letters, "...", commas, and at most one "->" behind them')
    given, arrow, wanted = words.partition("->")
    terms = given.split(",")
    if not operands or len(terms) != len(operands) or len(operands) > MOST_OPERANDS:
        raise SpecError(
            "cannot multiply another number of operands than there are terms",
            element="einsum",
            site=user_site(),
            expected=f"as many operands as terms, from 1 to {MOST_OPERANDS}",
            got=f"{len(terms)} terms and {len(operands)} operands",
        )
    values = [one if isinstance(one, TransposedStream) else as_element(one, "einsum") for one in operands]
    labels = [_labels(subscripts, term, value.ndim) for term, value in zip(terms, values, strict=True)]
    counts = Counter(label for one in labels for label in one)
    dots = sorted((label for label in counts if label.isdigit()), key=int, reverse=True)
    if arrow:
        output = _output(subscripts, wanted, dots, counts)
    else:
        output = (*dots, *sorted(label for label, count in counts.items() if count == 1 and not label.isdigit()))
    return _product("einsum", values, labels, output)


def _malformed(subscripts: str, expected: str) -> SpecError:
    return SpecError(
        "cannot read the subscripts", element="einsum", site=user_site(), expected=expected, got=short_repr(subscripts)
    )


def _labels(subscripts: str, term: str, ndim: int) -> Labels:
    """Return the labels of an operand; axes behind its ellipsis have numbers, counted from the last one."""
    letters = term.replace("...", "", 1)
    if "." in letters:
        raise _malformed(subscripts, 'an ellipsis of three dots, "...", at most once in each term')
    rest = ndim - len(letters)
    if rest < 0 or (rest and letters == term):
        raise SpecError(
            "cannot label the axes of an operand",
            element="einsum",
            site=user_site(),
            expected=f"{ndim} letters, one for each axis, or an ellipsis for the others",
            got=f'"{term}"',
        )
    before, _, after = term.partition("...")
    return (*before, *(str(at) for at in reversed(range(rest))), *(after if letters != term else ""))


def _output(subscripts: str, wanted: str, dots: Sequence[str], counts: Counter[str]) -> Labels:
    letters = wanted.replace("...", "", 1)
    if "." in letters:
        raise _malformed(subscripts, 'an ellipsis of three dots, "...", at most once in each term')
    if len(set(letters)) != len(letters) or any(letter not in counts for letter in letters):
        raise _malformed(subscripts, "each letter of the result once, and among those of the operands")
    if dots and letters == wanted:
        raise _malformed(subscripts, 'an ellipsis in the result: axes behind "..." have no letter to be summed by')
    before, _, after = wanted.partition("...")
    return (*before, *(dots if letters != wanted else ()), *(after if letters != wanted else ""))


def read_axes(x1: Any, x2: Any, axes: Any) -> Product:
    """Return the product of two values summed over pairs of axes, as `tensordot` takes them.

    Raises:
        SpecError: for axes out of range, named twice, or not as many of both.
    """
    op = "tensordot"
    values = [one if isinstance(one, TransposedStream) else as_element(one, op) for one in (x1, x2)]
    left, right = values
    if isinstance(axes, int) and not isinstance(axes, bool):
        count = whole(op, "axes", axes, 0, min(left.ndim, right.ndim))
        pairs = [list(range(left.ndim - count, left.ndim)), list(range(count))]
    else:
        words = "a count, or axes of both: (1, 0) or ([1, 2], [0, 1])"
        both = several(op, "axes", axes, words, 2)
        if len(both) != 2:
            raise SpecError("cannot take axes=", element=op, site=user_site(), expected=words, got=short_repr(axes))
        pairs = []
        for value, one in zip(values, both, strict=True):
            listed = several(op, "axes", one, words, MOST_AXES) if hasattr(one, "__iter__") else [one]
            normalise_axes(op, value, tuple(listed))
            pairs.append([axis % value.ndim for axis in listed])
    if len(pairs[0]) != len(pairs[1]):
        raise SpecError(
            "cannot sum over another number of axes on the left than on the right",
            element=op,
            site=user_site(),
            expected="as many of both",
            got=f"{len(pairs[0])} and {len(pairs[1])}",
        )
    labels = [[f"a{axis}" for axis in range(left.ndim)], [f"b{axis}" for axis in range(right.ndim)]]
    for one, other in zip(*pairs, strict=True):
        labels[1][other] = labels[0][one]
    output = (
        *(label for axis, label in enumerate(labels[0]) if axis not in pairs[0]),
        *(label for axis, label in enumerate(labels[1]) if axis not in pairs[1]),
    )
    return _product(op, values, [tuple(one) for one in labels], output)


def _product(op: str, values: Sequence[Any], labels: Sequence[Labels], output: Labels) -> Product:
    """Check sizes, dtypes and streams, and see through transposed streams."""
    operands = []
    sizes: dict[str, int] = {}
    for value, own in zip(values, labels, strict=True):
        for label, size in zip(own, value.shape, strict=True):
            if size is not None and sizes.setdefault(label, size) != size:
                raise SpecError(
                    "cannot multiply along axes of different size",
                    element=op,
                    site=user_site(),
                    expected=f"equal sizes of axes {_shown(op, label)}",
                    got=f"{sizes[label]} and {size}, in {' and '.join(format_shape(one.shape) for one in values)}",
                )
        if isinstance(value, TransposedStream):
            own = tuple(label for _, label in sorted(zip(value.axes, own, strict=True)))
            value = value.base
        if value.dtype == BOOL:
            raise SpecError(
                "cannot multiply bools",
                element=op,
                site=user_site(),
                expected="a dtype of numbers",
                hint="cast to an integer dtype",
            )
        operands.append(Labelled(value, own))
    streams = [one for one in operands if one.value.spec.is_stream]
    along = {one.labels[0] for one in streams}
    if len(along) > 1:
        raise SpecError(
            "cannot multiply every record of a stream by every record of another",
            element=op,
            site=user_site(),
            expected="one label for axis 0 of all streams",
            got=", ".join(_shown(op, label) for label in sorted(along)),
            hint='streams meet record by record: "ni,nj->nij", or summed over their records: "ni,nj->ij"',
        )
    if any(one.labels[0] in one.labels[1:] for one in streams):
        raise SpecError(
            "cannot take the diagonal between a stream and its items",
            element=op,
            site=user_site(),
            expected="another label for axis 0 than for axes of items",
            got=", ".join(format_shape(one.value.shape) for one in streams),
        )
    return Product(op, tuple(operands), output, next(iter(along), None))


def _shown(op: str, label: str) -> str:
    """Return a label as its user knows it."""
    return f'"{label}"' if op == "einsum" and not label.isdigit() else '"..."' if op == "einsum" else label[1:]
