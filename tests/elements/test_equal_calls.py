"""Calls of public functions that are equal to earlier ones, and so are copied from what these made."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import Compute, Constant
from flowcompute.elements.calls.call_templates import KNOWN_CALLS, call_key
from flowcompute.graph import UnknownError, exact
from tests.checkpoint.elements import OPERATIONS_BY_NAME, elementwise
from tests.checkpoint.network_elements import NETWORKS
from tests.checkpoint.numeric_elements import NUMERIC
from tests.checkpoint.operands import rows
from tests.model_files.files import gguf_file


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    KNOWN_CALLS.clear()
    yield
    KNOWN_CALLS.clear()


def structure(made: Any) -> list[Any]:
    """Return all that can be told of elements, but for the identity of their operations."""
    places: dict[int, int] = {}
    facts: list[Any] = []

    def visit(one: Any) -> int:
        if id(one) not in places:
            inputs = [visit(other) for other in one.inputs]
            call = None if one.call is None else (one.call.name, one.call.site, one.call.arguments)
            facts.append((type(one), inputs, one.spec, one.name, one.site, call, one.is_step, of_kind(one)))
            places[id(one)] = len(places)
        return places[id(one)]

    return [*map(visit, made if isinstance(made, tuple) else (made,)), facts]


def of_kind(one: Any) -> Any:
    if isinstance(one, Constant):
        return one.value.tobytes()
    if not isinstance(one, Compute):
        return None
    try:
        attrs = exact(one.attrs)
    except UnknownError:
        attrs = sorted(one.attrs)
    return one.op.kept_name, attrs, one.again, one.pin


def thrice(make: Callable[[], Any]) -> Any:
    """Make what is copied at the third time at the latest."""
    return [make() for _ in range(3)][-1]


def test_elements_that_are_copied_are_those_that_are_made(tmp_path: Path) -> None:
    copied, jobs = 0, {**OPERATIONS_BY_NAME, **NUMERIC, **NETWORKS, **elementwise()}
    for name, job in jobs.items():
        KNOWN_CALLS.clear()
        first = structure(job(tmp_path))
        assert structure(thrice(lambda job=job: job(tmp_path))) == first, name
        copied += sum(known.template is not None for known in KNOWN_CALLS.values())
    assert copied > len(jobs)


@pytest.mark.parametrize(
    ("known", "other"),
    [
        (lambda x, _: x * x, lambda x, y: x * y),
        (lambda x, y: fc.where(x > 0, x, y), lambda x, y: fc.where(x > 0, y, x)),
        (lambda x, _: x + 0.0, lambda x, _: x + -0.0),
        (lambda x, _: x + 1, lambda x, _: x + True),
        (lambda x, _: x.sum(axis=1), lambda x, _: x.sum(1, keepdims=True)),
        (lambda x, _: x[:, 1:3], lambda x, _: x[:, 2:4]),
        (lambda x, _: fc.maximum(x, x), lambda _, y: fc.maximum(y.astype("f8"), y.astype("f8"))),
    ],
)
def test_calls_that_differ_are_told_apart(known: Callable[..., Any], other: Callable[..., Any]) -> None:
    x, y = rows(), rows()
    expected = structure(other(x, y))
    thrice(lambda: known(x, y))
    assert structure(other(x, y)) == expected


@pytest.mark.parametrize("last", [lambda x: x, lambda x: x.astype("f8")])
def test_what_functions_find_out_about_operands_counts(last: Callable[[Any], Any]) -> None:
    # Runs of a cut are reduced by an operation of their own. Their spec is that of any stream of unknown length.
    x = rows("f4", (12,))
    cut = last(fc.cut(x[x > 0], every=5, tail="emit"))
    whole = last(fc.abs(fc.cut(x[x > 0], every=5, tail="drop")))
    assert cut.spec == whole.spec
    assert thrice(lambda: whole.sum(axis=1)).op.name == "sum"
    assert cut.sum(axis=1).op.name == "each"


def test_copies_bear_the_line_of_their_own_call() -> None:
    x = rows()
    first = thrice(lambda: fc.nn.softmax(x, axis=-1))
    other = fc.nn.softmax(x, axis=-1)
    lines = [one.site.line for one in (first, other)]
    assert lines[1] == lines[0] + 1
    assert first.call is not other.call
    assert {one.site.line for one in (other, *other.inputs)} == {lines[1]}


def test_calls_with_tensors_of_files_are_copied(tmp_path: Path) -> None:
    raw = fc.weights(gguf_file(tmp_path)).raw("Q4_0")

    def decoded() -> Any:
        return fc.dequantize(raw, "Q4_0")

    first = structure(decoded())
    assert structure(thrice(decoded)) == first
    (known,) = KNOWN_CALLS.values()
    assert known.template is not None


def test_constants_are_looked_into(tmp_path: Path) -> None:
    assert call_key(print, (fc.constant(np.zeros(3)),), {}, []) is None
    assert call_key(print, (fc.weights(gguf_file(tmp_path)).raw("Q4_0"),), {}, []) is not None


def test_mistakes_are_found_beside_what_is_known() -> None:
    x, y = rows(), rows("f4", (12, 5))
    thrice(lambda: x + x)
    for _ in range(3):
        with pytest.raises(fc.SpecError, match="cannot broadcast item shapes"):
            x + y


def test_what_is_known_is_bounded() -> None:
    x = rows()
    for number in range(3000):
        x + float(number)
    assert len(KNOWN_CALLS) <= 1024
    for number in range(16):
        wide = rows("f4", (2, 40_000 + number))
        thrice(lambda wide=wide: fc.nn.cross_entropy(wide, fc.source(np.zeros(2, "i8"))))
    held = sum(known.template.constant_bytes for known in KNOWN_CALLS.values() if known.template is not None)
    assert 3 << 20 < held <= 4 << 20


def test_operations_of_one_call_are_neither_known_nor_held() -> None:
    x = rows()

    def composed() -> weakref.ref[np.ndarray]:
        scale = np.ones(4, "f4")

        @fc.kernel
        def twice(a: float) -> float:
            return a + a

        @twice.vjp
        def gradient(_: Any, gradient: Any) -> Any:
            return gradient * scale

        for one in (twice(x), fc.opencl("float f(float v) { return v; }", x)):
            fc.maximum(x, one)
            one.astype("f8").sum(axis=1)
            fc.concat((one, x), axis=1)
        return weakref.ref(scale)

    held = [composed() for _ in range(3)]
    gc.collect()
    assert all(one() is None for one in held)
    assert not KNOWN_CALLS
    assert thrice(lambda: x * x) is not None
    assert KNOWN_CALLS


def test_records_have_a_key_only_where_they_are_held() -> None:
    add = fc.add.op
    assert call_key(print, (add,), {}, []) is not None
    assert call_key(print, ((add,),), {}, []) is None
    assert call_key(print, (), {"op": add}, []) is None


def test_parameters_of_equal_numbers_stay_two() -> None:
    made = [fc.parameter(1.0) for _ in range(4)]
    assert len({id(one) for one in made}) == 4
    assert len({id(one.inputs[0]) for one in made}) == 4
