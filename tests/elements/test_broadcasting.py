"""Which operands fit: NumPy's rules for items, and the stream axis that never broadcasts. Refusals say everything."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.errors import SpecError

N = 6


def stream(*item: int, name: str | None = None) -> Element:
    return fc.source(np.arange(N * int(np.prod(item)), dtype=np.float64).reshape(N, *item), name=name)


def unknown(*item: int, length: int = N) -> Element:
    return fc.iterate([np.ones((length, *item))], shape=item, dtype="float64")


def resident(*shape: int) -> Element:
    return fc.constant(np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape))


def value_of(element: Element) -> Any:
    return fc.resolve(element, device="numpy", progress=False)


ITEMS = [(), (1,), (3,), (2, 1), (2, 3), (1, 3), (4, 2, 3), (0,), (2, 0)]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(ITEMS, repeat=2)))
def test_streams_broadcast_over_items_of_equal_rank_only(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = stream(*left), stream(*right)
    try:
        shape = np.broadcast_shapes(left, right) if len(left) == len(right) else None
    except ValueError:
        shape = None
    if shape is None:
        with pytest.raises(SpecError):
            a + b
        return
    assert (a + b).shape == (N, *shape)
    assert np.array_equal(value_of(a + b), a.array + b.array)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("item", "shape"),
    list(itertools.product([(), (3,), (2, 3), (2, 1)], [(), (1,), (3,), (2, 1), (1, 3), (2, 3), (5,), (4, 2, 3)])),
)
def test_residents_of_lower_rank_broadcast_over_items(item: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x, w = stream(*item), resident(*shape)
    if len(shape) > len(item) and shape[0] not in (1, N):
        with pytest.raises(SpecError):
            x * w
        return
    try:
        want = x.array * w.value  # type: ignore[attr-defined]
    except ValueError:
        with pytest.raises(SpecError):
            x * w
        return
    if want.ndim > x.ndim or want.shape[0] != N:
        return
    for made in (x * w, w * x):
        assert made.spec.is_stream
        assert np.array_equal(value_of(made), want)


def test_a_resident_of_equal_rank_is_cut_along_the_stream() -> None:
    x, w = stream(3), resident(N, 3)
    for made in (x - w, x - resident(N, 1), resident(N) - stream(), x - resident(1, 3)):
        assert made.spec.is_stream
        assert made.spec.length == N
    assert np.array_equal(value_of(x - w), x.array - w.value)  # type: ignore[attr-defined]
    assert np.array_equal(value_of(x - resident(1, 3)), x.array - np.arange(3.0))  # type: ignore[attr-defined]
    batches = fc.Strategy(batch_bytes=48)
    assert np.array_equal(fc.resolve(x - w, device="numpy", strategy=batches, progress=False), x.array - w.value)  # type: ignore[attr-defined]


def test_the_result_of_a_fold_with_keepdims_broadcasts_like_a_row() -> None:
    total = resident(2, 3).sum(axis=0, keepdims=True)
    assert total.shape == (1, 3)
    x = stream(3)
    assert (x - total).shape == (N, 3)
    assert np.array_equal(value_of(x - total), x.array - np.array([3.0, 5, 7]))  # type: ignore[attr-defined]


def test_streams_of_one_record_do_not_broadcast() -> None:
    one = fc.source(np.ones((1, 3)))
    with pytest.raises(SpecError, match="different length"):
        one + stream(3)


def test_residents_follow_numpy_alone() -> None:
    for left, right in itertools.product([(), (1,), (3,), (2, 1), (4, 1, 3)], repeat=2):
        made = resident(*left) + resident(*right)
        assert not made.spec.is_stream
        assert made.shape == np.broadcast_shapes(left, right)


def test_lengths_are_found_where_one_stream_knows_its_own() -> None:
    x, y = unknown(3), stream(3)
    assert x.shape == (None, 3)
    assert (x + y).shape == (N, 3)
    assert (x + x).shape == (None, 3)
    assert fc.where(x > 0, x, y).shape == (N, 3)
    assert (x + resident(N, 3)).shape[1:] == (3,)


REFUSALS: dict[str, tuple[Callable[[], Any], str, str, str, str | None]] = {
    # build, start of the message, expected, got, do
    "unequal rank": (
        lambda: stream(3, name="x") + stream(),
        'add: cannot align streams of unequal rank',
        f"2 axes as in ({N}, 3)",
        f"({N},)",
        "keepdims=True",
    ),
    "numbers that were meant to be an array": (
        lambda: fc.range(3) == stream(1),
        "equal: cannot align streams of unequal rank",
        "1 axes as in (3,)",
        f"({N}, 1)",
        "np.arange makes an array that each record meets",
    ),
    "windows": (
        lambda: stream(3, name="x") - fc.window(stream(3), 4).mean(axis=1),
        "subtract: cannot align streams of different length",
        f"{N} records as in x",
        f"{N - 3} records in window",
        f"x[3:] has the records that windows end at, x[:{N - 3}] those they begin at",
    ),
    "length": (
        lambda: stream(3, name="x") + fc.source(np.ones((4, 3)), name="y"),
        'add: cannot align streams of different length',
        f"{N} records as in x",
        "4 records in y",
        None,
    ),
    "resident of higher rank": (
        lambda: stream(3) * resident(2, N, 3),
        'multiply: cannot align a resident operand with the stream',
        "broadcasts with items (3,)",
        f"(2, {N}, 3)",
        None,
    ),
    "resident of equal rank and other length": (
        lambda: stream(3) * resident(4, 3),
        'multiply: cannot align a resident operand with the stream',
        "broadcasts with items (3,)",
        "(4, 3)",
        None,
    ),
    "items": (
        lambda: fc.maximum(stream(3), stream(4)),
        'maximum: cannot broadcast item shapes',
        "equal sizes, or 1",
        "(3,) and (4,)",
        None,
    ),
    "shapes": (
        lambda: resident(3) + resident(4),
        'add: cannot broadcast shapes',
        "equal sizes, or 1",
        "(3,) and (4,)",
        None,
    ),
    "dtypes": (lambda: stream(3) & stream(3), 'bitwise_and: cannot compute with these dtypes', "", "float64, float64", ""),
    "condition": (lambda: fc.where(stream(3), 1, 2), 'where: cannot choose by a condition that is not boolean', "bool", "float64", "compare it"),
    "axis": (lambda: stream(3).sum(axis=2), "sum: cannot find axis 2", "-2 to 1", "2", None),
    "axis of a number": (lambda: resident().sum(axis=0), "sum: cannot find axis 0", "no axis", "0", None),
    "axis twice": (lambda: stream(3).max(axis=(0, -2)), 'max: cannot reduce an axis twice', "", "(0, -2)", None),
    "axis of no kind": (lambda: stream(3).sum(axis="x"), "sum: cannot take axis=", "", "'x'", None),
    "axis between two": (lambda: stream(3).sum(axis=0.5), "sum: cannot take axis=", "", "0.5", None),
    "empty axis": (lambda: fc.source(np.ones((3, 0))).max(axis=1), 'max: cannot reduce an empty axis', "", "axis 1", None),
    "empty stream": (lambda: fc.source(np.ones((0, 3))).argmin(axis=0), "argmin: cannot reduce an empty axis", "", "axis 0", None),
    "two axes of argmax": (lambda: stream(2, 3).argmax(axis=(1, 2)), 'argmax: cannot search several axes', "", "(1, 2)", None),
    "bool sum": (lambda: stream(3).sum(dtype=bool), 'sum: cannot give a bool result', "", "", "fc.any"),
    "dtype": (lambda: stream(3).astype("complex64"), "astype: cannot use this dtype: complex64 is not supported", "", "", None),
    "inner sizes": (lambda: stream(3) @ resident(4, 2), 'matmul: cannot multiply matrices whose inner sizes differ', "3 rows", f"({N}, 3) @ (4, 2)", None),
    "matmul of numbers": (lambda: stream() @ resident(4), "matmul: ", "", f"({N},) @ (4,)", None),
    "contracting the stream": (lambda: stream(3) @ stream(3), "matmul: cannot contract the stream axis", "", f"({N}, 3) @ ({N}, 3)", "X.T @ Y"),
    "matmul of bools": (lambda: fc.matmul(stream(3) > 0, resident(3, 2) > 0), 'matmul: cannot multiply bools', "", "", "cast"),
    "vectors": (lambda: fc.vecdot(stream(3), stream(4)), "vecdot: ", "", "(3,) and", None),
    "vecdot along an axis that one lacks": (
        lambda: fc.vecdot(np.ones((3, 4)), fc.constant(np.ones(4)), axis=-2), "vecdot: ", "", "(3, 4) and", None,
    ),
    "vecdot of numbers": (lambda: fc.vecdot(stream(3), 2.0), 'vecdot: cannot multiply a number as a vector', "", "a number", None),
    "name": (lambda: fc.source(np.ones(3), name=""), "cannot take name=", "", "", None),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_name_the_operation_both_sides_and_the_line(case: str) -> None:
    build, message, expected, got, hint = REFUSALS[case]
    with pytest.raises(SpecError) as caught:
        build()
    error = caught.value
    lines = str(error).splitlines()
    assert lines[0].startswith(message), lines[0]
    line = inspect.getsourcelines(build)[1]
    written = range(line, line + len(inspect.getsourcelines(build)[0]))
    assert error.site is not None
    assert error.site.file == __file__
    assert error.site.line in written
    assert f"  made at   {__file__}:{error.site.line}" in lines
    assert expected in (error.expected or "")
    assert got in (error.got or "")
    for label, text in (("expected", error.expected), ("got", error.got), ("do", error.hint)):
        assert (text is None) or f"  {label:<9} {text}" in str(error)
    if hint is not None:
        assert hint in (error.hint or "")


def test_the_site_is_the_users_line_through_every_way_of_composing() -> None:
    x = stream(3)
    here = inspect.currentframe()
    assert here is not None
    first = here.f_lineno
    made = [
        x + 1,
        1 + x,
        fc.add(x, 1),
        np.add(x, 1),
        x.sum(axis=1),
        x.pipe(fc.tanh),
        x.clip(0, 1),
        x.mean(),
        x >> fc.to_array(),
    ]
    for line, element in enumerate(made, first + 2):
        assert element.site.file == __file__
        assert element.site.line == line
