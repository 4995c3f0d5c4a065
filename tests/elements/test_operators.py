"""Operators, methods, functions and NumPy's ufuncs all build the same elements; nothing runs by accident."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.operators import FUNCTIONS
from flowcompute.errors import SpecError

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": abs,
    "bitwise_invert": operator.invert,
}
MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
ARRAY = np.arange(1, 6, dtype=np.int32)


def value_of(element: Element) -> Any:
    return fc.resolve(element, device="numpy", progress=False)


@pytest.mark.parametrize("name", BINARY)
def test_operators_are_their_functions(name: str) -> None:
    a, b = fc.source(ARRAY), fc.source(ARRAY[::-1].copy())
    made = BINARY[name](a, b)
    assert made.op.name == name
    # Integers are divided in float64, and so are cast first.
    left, right = (one.inputs[0] if name == "divide" else one for one in made.inputs)
    assert left is a
    assert right is b
    assert np.array_equal(value_of(made), BINARY[name](ARRAY, ARRAY[::-1]))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "other", [3, np.int32(3), np.full(5, 3, np.int32), [3, 3, 3, 3, 3]], ids=["weak", "scalar", "array", "list"]
)
def test_operators_with_an_element_on_either_side(name: str, other: Any) -> None:
    a = fc.source(ARRAY)
    array = np.asarray(other, np.int32)
    right, left = BINARY[name](a, other), BINARY[name](other, a)
    assert isinstance(right, Element)
    assert isinstance(left, Element)
    assert np.array_equal(value_of(right), BINARY[name](ARRAY, array))
    assert np.array_equal(value_of(left), BINARY[name](array, ARRAY))


@pytest.mark.parametrize("name", UNARY)
def test_signs(name: str) -> None:
    made = UNARY[name](fc.source(ARRAY))
    assert made.op.name == name
    assert np.array_equal(value_of(made), UNARY[name](ARRAY))


def _ufuncs() -> dict[str, np.ufunc]:
    return {name: thing for name, thing in vars(np).items() if isinstance(thing, np.ufunc)}


@pytest.mark.parametrize("name", sorted(_ufuncs()))
def test_every_ufunc_of_numpy_is_lazy_or_refused(name: str) -> None:
    ufunc = _ufuncs()[name]
    array = np.linspace(0.1, 0.9, 5) if "f" in "".join(ufunc.types) or "d" in "".join(ufunc.types) else ARRAY
    operands = [fc.source(array)] * ufunc.nin
    if name in ("matvec", "vecmat"):
        operands = [fc.constant(np.ones((5, 5))), operands[0]]
    try:
        made = ufunc(*operands)
    except SpecError as error:
        assert error.element
        assert error.site is not None
        assert error.hint or error.got
        return
    assert isinstance(made, Element)
    result = value_of(made)
    with np.errstate(invalid="ignore"):
        assert np.allclose(result, ufunc(*[array] * ufunc.nin), equal_nan=True), name


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f2", "f4", "f8", bool])
@pytest.mark.parametrize("ufunc", [np.fabs, np.rint])
def test_ufuncs_that_make_floats_of_integers(ufunc: np.ufunc, dtype: str) -> None:
    array = np.array([0, 1, 3, 127, -128 if np.dtype(dtype).kind in "if" else 1]).astype(dtype)
    wanted, made = ufunc(array), ufunc(fc.source(array))
    assert made.dtype == wanted.dtype
    np.testing.assert_array_equal(value_of(made), wanted)


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if isinstance(f, Function)])
def test_functions_have_a_ufunc_where_numpy_has_one(name: str) -> None:
    """`np.tanh(x)` is `fc.tanh(x)`."""
    op = FUNCTIONS[name].op  # type: ignore[attr-defined]
    if not isinstance(op.numpy, np.ufunc):
        return
    for dtype in (np.float32, np.int16, bool):
        operands = [fc.source(np.ones(3, dtype))] * op.arity
        try:
            ours = FUNCTIONS[name](*operands)
        except SpecError:
            continue
        assert op.numpy(*operands).op.name == ours.op.name


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add.reduce(x),
        lambda x: np.add.accumulate(x),
        lambda x: np.add.outer(x, x),
        lambda x: np.add(x, 1, dtype=np.float64),
        lambda x: np.add(x, 1, where=np.ones(5, bool)),
        lambda x: np.add(x, 1, out=np.ones(5)),
        lambda x: np.add.at(np.ones(5), [0], x),
    ],
)
def test_ufunc_methods_and_options_are_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="lazy element"):
        call(fc.source(ARRAY))


def test_in_place_operators_make_a_new_element() -> None:
    x = before = fc.source(ARRAY)
    x += 1
    assert x is not before
    assert np.array_equal(value_of(x), ARRAY + 1)
    array = np.ones(5)
    with pytest.raises(TypeError):
        array += before  # type: ignore[misc]


METHODS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(axis=0, keepdims=True),
    "prod": lambda x: x.prod(axis=1, dtype=np.float32),
    "mean": lambda x: x.mean(axis=(0, 1)),
    "var": lambda x: x.var(axis=0, correction=1),
    "std": lambda x: x.std(axis=1, correction=1, keepdims=True),
    "min": lambda x: x.min(axis=-1),
    "max": lambda x: x.max(),
    "argmin": lambda x: x.argmin(axis=0),
    "argmax": lambda x: x.argmax(axis=1, keepdims=True),
    "any": lambda x: x.any(axis=1),
    "all": lambda x: x.all(axis=0),
    "clip": lambda x: x.clip(2, 4),
    "astype": lambda x: x.astype("float16"),
}
FUNCTION_CALLS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: fc.sum(x, 0, keepdims=True),
    "prod": lambda x: fc.prod(x, 1, dtype=np.float32),
    "mean": lambda x: fc.mean(x, (0, 1)),
    "var": lambda x: fc.var(x, 0, correction=1),
    "std": lambda x: fc.std(x, 1, correction=1, keepdims=True),
    "min": lambda x: fc.min(x, -1),
    "max": lambda x: fc.max(x),
    "argmin": lambda x: fc.argmin(x, 0),
    "argmax": lambda x: fc.argmax(x, 1, keepdims=True),
    "any": lambda x: fc.any(x, 1),
    "all": lambda x: fc.all(x, 0),
    "clip": lambda x: fc.clip(x, 2, 4),
    "astype": lambda x: fc.astype(x, "float16"),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_their_functions(name: str) -> None:
    array = np.arange(12.0).reshape(4, 3)
    x = fc.source(array)
    method, function = METHODS[name](x), FUNCTION_CALLS[name](x)
    assert method.hash == function.hash
    assert method.spec == function.spec
    assert np.array_equal(value_of(method), value_of(function))


IMPLICIT: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "iter": iter,
    "list": list,
    "contains": lambda x: 1 in x,
    "asarray": np.asarray,
    "array": np.array,
    "sum": sum,
    "if": lambda x: 1 if x == 1 else 0,
    "chain": lambda x: 1 < x < 3,
    "and": lambda x: x and 1,
    "range": lambda x: range(x),
    "list index": lambda x: [1, 2, 3][x],
    "np.sum": lambda x: np.asarray([x]).sum() if isinstance(np.asarray(x), np.ndarray) else 0,
}


@pytest.mark.parametrize("name", IMPLICIT)
def test_nothing_runs_by_accident(name: str) -> None:
    with pytest.raises(TypeError, match=r"resolve"):
        IMPLICIT[name](fc.source(ARRAY))


def test_elements_are_frozen() -> None:
    x = fc.source(ARRAY)
    made = x + 1
    for element in (x, made, fc.constant(ARRAY), x >> fc.to_array()):
        for field in ("spec", "name", "inputs", "anything"):
            with pytest.raises(AttributeError, match="frozen"):
                setattr(element, field, None)
            with pytest.raises(AttributeError, match="frozen"):
                delattr(element, field)


def test_constants_keep_a_copy_that_nobody_can_write_to() -> None:
    array = np.arange(3.0)
    constant = fc.constant(array)
    array[0] = 9
    assert constant.value[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        constant.value[0] = 9


def test_hash_is_identity_and_equality_builds_an_element() -> None:
    x, y = fc.source(ARRAY), fc.source(ARRAY)
    assert hash(x) != hash(y)
    assert len({x, y, x}) == 2
    assert (x == y).op.name == "equal"
    assert (x != y).op.name == "not_equal"
    assert {x: 1}[x] == 1


def test_pipe_applies_from_left_to_right() -> None:
    x = fc.source(ARRAY)
    made = x.pipe(fc.subtract, 1).pipe(lambda value, by: value * by, by=3)
    assert np.array_equal(value_of(made), (ARRAY - 1) * 3)


def test_shift_composes_with_a_destination_and_shifts_otherwise() -> None:
    x = fc.source(ARRAY)
    unbound = fc.to_array()
    bound = x >> unbound
    assert bound.inputs == (x,)
    assert unbound.inputs == ()
    assert np.array_equal(value_of(bound), ARRAY)
    assert np.array_equal(value_of(x >> 1), ARRAY >> 1)
    assert np.array_equal(value_of(64 >> x), 64 >> ARRAY)
    with pytest.raises(SpecError, match="cannot give a destination a second input"):
        x >> bound
    with pytest.raises(SpecError, match="cannot compose with this") as caught:
        x >> np.tanh.__call__
    assert "pipe" in str(caught.value)
    with pytest.raises(SpecError):
        fc.source(np.ones(3)) >> 1


def test_an_element_is_shown_with_its_spec() -> None:
    assert repr(fc.source(ARRAY, name="x")) == "<MemorySource x: int32(5,) stream>"
    assert repr(fc.source(ARRAY) + 1) == "<Compute add: int32(5,) stream>"
    assert repr(fc.constant(2.5)) == "<Constant 2.5: float64()>"


def test_a_copy_is_another_element() -> None:
    x = fc.source(ARRAY)
    assert copy.copy(x) is not x


@pytest.mark.parametrize("operand", [1j, np.complex64(1), "text", object(), None, [[1, 2], [3]], np.array(["a"]), b"x"])
def test_what_is_no_operand_is_refused(operand: Any) -> None:
    with pytest.raises(SpecError) as caught:
        fc.add(fc.source(ARRAY), operand)
    assert caught.value.element == "add"
    assert "test_operators.py" in str(caught.value)


def test_too_few_or_many_operands() -> None:
    x = fc.source(ARRAY)
    for call in (lambda: fc.add(x), lambda: fc.add(x, x, x), lambda: fc.tanh(x, x)):
        with pytest.raises(SpecError, match="cannot take so many operands"):
            call()


def test_a_squared_power_is_a_product() -> None:
    x = fc.source(np.array([1.5, -2.5]))
    assert (x**2).op.name == "square"
    assert (x**2.0).op.name == "square"
    assert (x**3).op.name == "pow"
    with pytest.raises(SpecError, match="cannot raise an integer to a negative power"):
        fc.source(ARRAY) ** -1


def test_clip_limits_from_one_side_or_both() -> None:
    array = np.array([-1.0, 0.5, np.nan, 9])
    x = fc.source(array)
    values = fc.resolve(
        x.clip(0, 1), x.clip(min=0), x.clip(max=1), x.clip(), x.clip(2, 1), device="numpy", progress=False
    )
    for value, want in zip(values, [(0, 1), (0, None), (None, 1), (None, None), (2, 1)], strict=True):
        assert np.array_equal(value, array if want == (None, None) else np.clip(array, *want), equal_nan=True)
    assert value_of(fc.source(np.array([True, False])).clip()).tolist() == [True, False]
    picture = np.array([0, 7, 255], "u1")
    for limits in ((-5, 300), (3, 300), (-5, 9), (0, 255)):
        np.testing.assert_array_equal(value_of(fc.source(picture).clip(*limits)), picture.clip(*limits), strict=True)
    for limits in ((300, 400), (-9, -5)):
        with pytest.raises(SpecError, match="cannot hold a Python number"):
            fc.source(picture).clip(*limits)
