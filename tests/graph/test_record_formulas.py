"""Resident formulas computed for each record: a record has what the formula gives of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.graph import Made, Placeholder, per_record

rng = np.random.default_rng(7)
A = rng.standard_normal((5, 2, 3, 4)).astype("f4")
B = rng.standard_normal((5, 4)).astype("f4")
AT = rng.integers(0, 3, (5, 2))
W = rng.standard_normal((4, 6)).astype("f4")
T = rng.standard_normal((3, 4)).astype("f4")


@fc.kernel
def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@fc.kernel
def added(total: Any, x: Any) -> Any:
    return total + x


FORMULAS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "operands of unequal rank": lambda a, b, i: a + b,
    "a constant of more axes": lambda a, b, i: fc.add(b, T),
    "a constant of as many axes as the stream": lambda a, b, i: fc.multiply(b, A[:, :1, :1, :]),
    "a number that is a record": lambda a, b, i: fc.sum(b) * a,
    "casts": lambda a, b, i: a.astype("int32").astype("float16"),
    "choices": lambda a, b, i: fc.where(a > 0, a, b),
    "reductions": lambda a, b, i: fc.sum(a, axis=(0, 2)) - fc.max(a, axis=1).mean(axis=0, keepdims=True).sum(axis=-1),
    "norms": lambda a, b, i: fc.nn.softmax(a, axis=1) + fc.nn.layer_norm(a, axis=2),
    "views": lambda a, b, i: fc.permute_dims(a, (2, 0, 1))[::2, :, 1:].reshape(2, 4),
    "new axes": lambda a, b, i: fc.broadcast_to(fc.expand_dims(b, 0), (3, 4)),
    "joined": lambda a, b, i: fc.concat([a, a[:, :1]], axis=1),
    "products": lambda a, b, i: fc.matmul(fc.matmul(a, W), W.T),
    "products with each other": lambda a, b, i: fc.matmul(a, fc.permute_dims(a, (0, 2, 1))),
    "a vector and matrices": lambda a, b, i: fc.vecdot(a, b, axis=-1),
    "rows of a table": lambda a, b, i: fc.take(T, i, axis=0),
    "numbers at positions": lambda a, b, i: fc.take_along_axis(a, i.reshape(2, 1, 1), axis=1),
    "positions that are known": lambda a, b, i: fc.take(a, np.array([2, 0]), axis=1),
    "attention": lambda a, b, i: fc.nn.attention(a, a, a, causal=True),
    "a kernel": lambda a, b, i: larger(a, b),
    "a scan along an axis": lambda a, b, i: fc.scan(added, a, init=np.float32(0), axis=1),
    "sorted": lambda a, b, i: fc.sort(b),
    "padded": lambda a, b, i: fc.pad(a, ((0, 0), (1, 0), (0, 2))),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_each_record_has_what_the_formula_gives(name: str) -> None:
    stand_ins = [Placeholder(one.dtype, one.shape[1:]) for one in (A, B, AT)]
    formula = FORMULAS[name]
    streams = dict(zip(stand_ins, map(fc.source, (A, B, AT)), strict=True))
    (got,) = per_record([formula(*stand_ins)], streams)
    made = got.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=1))
    for record in range(len(A)):
        # A constant that is no placeholder, but no constant to what composes either.
        arrays = [fc.constant(one[record]).astype(one.dtype) for one in (A, B, AT)]
        wanted = formula(*arrays).resolve(device="numpy")
        np.testing.assert_array_equal(made[record], wanted, strict=True)


def test_what_no_placeholder_is_part_of_stays_as_it_is() -> None:
    one = fc.constant(W).astype("float16") + 1
    (got,) = per_record([one], {})
    assert got is one


def test_a_placeholder_may_be_made_of_others() -> None:
    """As the state of a scan is of what is added to it."""
    x, total = Placeholder("float32", (4,)), Placeholder("float32", (4,))
    sums = Made((x * 2,), lambda doubled: fc.scan(added, doubled, init=np.float32(0)))
    (got,) = per_record([total + x], {x: fc.source(B), total: sums})
    np.testing.assert_allclose(got.resolve(device="numpy"), np.cumsum(2 * B, axis=0) + B, rtol=1e-5)


def test_formulas_are_deeper_than_the_stack() -> None:
    x = Placeholder("float32", (4,))
    y: Any = x
    for _ in range(3000):
        y = y + 1
    (got,) = per_record([y], {x: fc.source(B)})
    assert got.spec.is_stream


def test_what_streams_do_not_have_is_refused() -> None:
    x = Placeholder("float32", (4,))
    with pytest.raises(fc.SpecError, match="for each record"):
        per_record([fc.host(np.sin, x, dtype="float32", shape=(4,))], {x: fc.source(B)})
