"""The array object: attributes, operators, what it wraps and what it refuses."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
import flowcompute.array_api as xp
from flowcompute.errors import SpecError, SpecIndexError, SpecTypeError

ROWS = np.arange(12, dtype=np.float64).reshape(4, 3) - 5


def stream() -> xp.LazyArray:
    return xp.asarray(fc.source(ROWS))


def unknown() -> xp.LazyArray:
    return xp.asarray(fc.iterate(iter([ROWS]), shape=(3,), dtype="float64"))


def value(x: xp.LazyArray) -> Any:
    return x.resolve(device="numpy")


def test_an_element_is_wrapped_and_given_back() -> None:
    element = fc.source(ROWS)
    x = xp.asarray(element)
    assert x.element is element
    assert xp.asarray(x) is xp.astype(x, xp.float64, copy=False) is x
    assert xp.asarray(x, copy=True).element is xp.astype(x, xp.float64).element is element
    assert xp.asarray(element, dtype=xp.float64).element is element
    assert xp.asarray(element, dtype=xp.float32).element.dtype == "float32"
    assert xp.asarray(x, dtype=xp.float32).dtype == "float32"
    assert (x.name, x.base_name) == (None, "source")
    assert xp.asarray(element.named("rows")).name == "rows"


def test_attributes() -> None:
    x, lazy, number = stream(), unknown(), xp.asarray(2.5)
    assert (x.shape, x.ndim, x.size, x.dtype, x.device) == ((4, 3), 2, 12, xp.float64, "auto")
    assert (lazy.shape, lazy.ndim, lazy.size) == ((None, 3), 2, None)
    assert (number.shape, number.ndim, number.size) == ((), 0, 1)
    assert (lazy.T.shape, lazy.T.ndim, lazy.T.size, x.T.size) == ((3, None), 2, None, 12)
    assert repr(number) == "<LazyArray <Constant 2.5: float64()>>"


def test_numbers_and_arrays_become_constants() -> None:
    assert isinstance(xp.asarray([[1, 2], [3, 4]]).element, fc.Element)
    np.testing.assert_array_equal(value(xp.asarray([[1, 2], [3, 4]]) + 1), [[2, 3], [4, 5]])
    np.testing.assert_array_equal(value(xp.asarray(ROWS)), ROWS)
    np.testing.assert_array_equal(value(xp.from_dlpack(ROWS)), ROWS)
    changed = ROWS.copy()
    x = xp.asarray(changed)
    changed[:] = 0
    np.testing.assert_array_equal(value(x), ROWS)
    for call in (lambda: xp.asarray(ROWS, copy=False), lambda: xp.from_dlpack(ROWS, copy=False)):
        with pytest.raises(ValueError, match="without a copy"):
            call()
    assert xp.asarray(3, copy=False).dtype == xp.int64
    assert xp.from_dlpack(x) is x
    with pytest.raises(SpecTypeError):
        xp.asarray("text")
    with pytest.raises(SpecTypeError, match="complex"):
        xp.asarray([1, 2j])


@pytest.mark.parametrize("convert", [bool, int, float, complex, operator.index, list, np.asarray, np.from_dlpack])
@pytest.mark.parametrize("make", [lambda: xp.asarray(1), lambda: xp.sum(stream()), lambda: stream().T])
def test_nothing_is_read_by_accident(convert: Callable[[Any], Any], make: Callable[[], xp.LazyArray]) -> None:
    with pytest.raises(SpecTypeError, match="of a lazy value") as caught:
        convert(make())
    assert isinstance(caught.value, ValueError)
    assert "resolve()" in (caught.value.hint or "")
    assert caught.value.site is not None
    assert caught.value.site.file == __file__


def test_one_device() -> None:
    x = stream()
    assert x.to_device(x.device) is x
    assert xp.__array_namespace_info__().devices() == [xp.__array_namespace_info__().default_device()] == [x.device]
    for call in (
        lambda: x.to_device("gpu"),
        lambda: x.to_device("auto", stream=1),  # type: ignore[arg-type]
        lambda: xp.asarray(1, device="cpu"),
        lambda: xp.astype(x, xp.float32, device="cpu"),
        lambda: xp.arange(3, device="cpu"),
    ):
        with pytest.raises(SpecError, match=r"cannot take (device|stream)="):
            call()


def test_the_namespace() -> None:
    x = stream()
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp is fc.array_api
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(SpecError, match="cannot take api_version="):
        x.__array_namespace__(api_version="2030.12")
    assert xp.__array_namespace_info__().capabilities() == {
        "boolean indexing": False,
        "data-dependent shapes": False,
        "max dimensions": 64,
    }
    assert not hasattr(fc.source(ROWS), "__array_namespace__")


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize(
    "make", [lambda a: xp.asarray(a), lambda a: xp.asarray(fc.source(a))], ids=["resident", "stream"]
)
def test_operators(make: Callable[[np.ndarray], xp.LazyArray]) -> None:
    left, right = np.array([3, 1, 7, 4]), np.array([2, 2, 1, 3])
    expected, built = [], []
    for function in (*OPERATORS, *COMPARISONS, *BITS):
        for a, b in ((left, right), (left, 2), (2, left)):
            lazy = [make(one) if isinstance(one, np.ndarray) else one for one in (a, b)]
            built.append(function(*lazy))
            expected.append(function(a, b))
    for unary in (operator.neg, operator.pos, operator.abs, operator.invert):
        built.append(unary(make(left - 4)))
        expected.append(unary(left - 4))
    values = fc.resolve(*(one.element for one in built), device="numpy")
    for got, array in zip(values, expected, strict=True):
        np.testing.assert_array_equal(got, array)
        assert got.dtype == array.dtype


def test_in_place_operators_make_new_arrays() -> None:
    x = before = stream()
    x += 1
    assert x is not before
    np.testing.assert_array_equal(value(x), ROWS + 1)
    np.testing.assert_array_equal(value(before), ROWS)


@pytest.mark.parametrize("form", ["resident", "stream", "unknown length"])
def test_a_number_is_assigned_at_masks_and_at_keys_of_items(form: str) -> None:
    keys: list[Any] = [Ellipsis, (slice(None), 1), (Ellipsis, slice(None, 2)), (slice(None), None, -1)]
    for key in [*keys, *([0, (slice(1, 3), 2), -1] if form == "resident" else [])]:
        x = {"resident": xp.asarray(ROWS), "stream": stream(), "unknown length": unknown()}[form]
        before, expected = x.element, ROWS.copy()
        x[key] = 7
        expected[key] = 7
        assert x.element is not before
        np.testing.assert_array_equal(value(x), expected)
    for number in (0, 2.5, xp.asarray(-1.0), xp.nan):
        x = {
            "resident": xp.asarray(ROWS),
            "stream": stream(),
            "unknown length": xp.asarray(fc.spool(unknown().element)),
        }[form]
        x[x > 2] = number
        np.testing.assert_array_equal(
            value(x), np.where(ROWS > 2, float(value(number) if isinstance(number, xp.LazyArray) else number), ROWS)
        )


@pytest.mark.parametrize("form", ["resident", "stream"])
def test_values_are_assigned_at_keys_of_items(form: str) -> None:
    def make(array: np.ndarray) -> xp.LazyArray:
        return xp.asarray(array if form == "resident" else fc.source(array))

    array = np.arange(24.0).reshape(2, 3, 4)
    cases: list[tuple[Any, np.ndarray]] = [
        ((slice(None), 1), array[:, 0] + 50),
        ((Ellipsis, slice(None, None, -2)), array[..., :2] * 9),
        ((slice(None), slice(1), slice(0, 0)), array[:, :1, :1]),
        (Ellipsis, array[:, ::-1]),
    ]
    for key, values in cases:
        x, expected = make(array), array.copy()
        x[key] = make(values)
        expected[key] = values
        np.testing.assert_array_equal(value(x), expected)
    x, expected = make(array), array.copy()
    x[:, 2, 1:] = xp.asarray([-1.0, -2.0, -3.0])
    expected[:, 2, 1:] = [-1, -2, -3]
    np.testing.assert_array_equal(value(x), expected)
    with pytest.raises(SpecError, match="cannot broadcast"):
        x[:, 2, 1:] = xp.asarray([1.0, 2.0])


def test_values_of_a_stream_are_not_put_into_a_resident_array() -> None:
    x = xp.asarray(np.zeros((4, 3)))
    with pytest.raises(SpecError, match="cannot assign to a part"):
        x[:, 1:] = stream()[:, 1:]


def test_an_assignment_changes_no_other_array() -> None:
    x = stream()
    copied, cast, alias = xp.asarray(x, copy=True), xp.astype(x, x.dtype), xp.asarray(x)
    x[x > 0] = 0
    for other in (copied, cast):
        np.testing.assert_array_equal(value(other), ROWS)
    np.testing.assert_array_equal(value(alias), np.minimum(ROWS, 0))


def test_other_assignments_are_refused() -> None:
    x, vector = stream(), xp.asarray([1.0, 2.0, 3.0])
    for key, number in (
        (0, 1.0),
        (slice(1, 2), 1.0),
        (x[:, 0] > 0, 1.0),
        ((slice(None), xp.asarray([0, 1])), 1.0),
        (x > 0, vector),
        ((), 1.0),
    ):
        with pytest.raises(SpecError, match="cannot assign to a part") as caught:
            x[key] = number
        assert "where" in (caught.value.hint or "")
    single = xp.astype(x, xp.float32)
    with pytest.raises(SpecError, match="cannot assign to a part"):
        single[single > 0] = xp.asarray(1.0)
    whole = xp.asarray([1, 2])
    with pytest.raises(SpecTypeError, match="cannot mix kinds"):
        whole[0] = 0.5
    with pytest.raises(SpecIndexError):
        whole[2] = 1
    with pytest.raises(SpecTypeError, match="cannot take this argument"):
        whole[0] = np.ones(1)


@pytest.mark.parametrize("function", [operator.add, operator.eq, operator.lt, operator.matmul])
def test_what_is_no_array_of_the_standard_is_refused_and_not_compared(function: Callable[[Any, Any], Any]) -> None:
    x = xp.asarray(ROWS)
    for other in (ROWS, np.float32(1), np.int64(1), fc.constant(ROWS), fc.source(ROWS), 1j):
        for operands in ((x, other), (other, x)):
            with pytest.raises(TypeError):
                function(*operands)
    with pytest.raises(SpecTypeError, match="asarray"):
        function(x, ROWS)


def test_functions_take_arrays_only() -> None:
    for call in (
        lambda: xp.sum(ROWS),
        lambda: xp.abs(fc.source(ROWS)),
        lambda: xp.concat([xp.asarray(ROWS), ROWS]),
        lambda: xp.take(xp.asarray(ROWS), [0], axis=0),
        lambda: xp.matmul(stream(), 2.0),
        lambda: xp.where(True, stream(), 1.0),
        lambda: xp.diff(stream(), prepend=0.0),
    ):
        with pytest.raises(SpecTypeError, match="cannot take this argument") as caught:
            call()
        assert caught.value.hint == "asarray(x) makes an array"
    with pytest.raises(TypeError):
        np.add(xp.asarray(1), 1)
    assert stream() != "text"


def test_other_classes_may_have_operators_of_their_own() -> None:
    class Other:
        def __radd__(self, _: object) -> str:
            return "other"

    assert xp.asarray(1) + Other() == "other"


def test_transposes() -> None:
    x, w = stream(), xp.asarray(ROWS[:3, :2])
    np.testing.assert_array_equal(value(x.T), ROWS.T)
    np.testing.assert_array_equal(value(x.T @ x), ROWS.T @ ROWS)
    np.testing.assert_array_equal(value(xp.matmul(xp.matrix_transpose(x), x)), ROWS.T @ ROWS)
    np.testing.assert_array_equal(value(w.T), ROWS[:3, :2].T)
    np.testing.assert_array_equal(value(x @ w), ROWS @ ROWS[:3, :2])
    assert x.T.T.element is x.element
    assert xp.asarray(np.ones((2, 3, 4))).mT.shape == (2, 4, 3)
    for axes, attribute in (((2, 3, 4), "T"), ((3,), "T"), ((3,), "mT")):
        with pytest.raises(SpecError, match="cannot transpose"):
            getattr(xp.asarray(np.ones(axes)), attribute)
    with pytest.raises(SpecError, match="compute before transposing"):
        x.T + 1


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, 1, (0, 2), (2, 1), ()])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, -1, 0)])
def test_reductions_of_transposed_streams(order: tuple[int, ...], axis: Any, keepdims: bool) -> None:
    array = np.arange(24.0).reshape(4, 2, 3) % 5
    x, expected = xp.permute_dims(xp.asarray(fc.source(array)), order), np.transpose(array, order)
    assert x.shape == expected.shape
    np.testing.assert_array_equal(value(xp.permute_dims(x, order)), np.transpose(expected, order))
    for name in ("sum", "prod", "max", "min", "mean", "any", "all", "count_nonzero", "var"):
        got = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
        wanted = getattr(np, name)(expected, axis=axis, keepdims=keepdims)
        assert got.shape == np.shape(wanted), name
        np.testing.assert_allclose(value(got), wanted, err_msg=name)
    if axis != 0:
        return
    with pytest.raises(SpecError, match="cannot take axes="):
        xp.permute_dims(x, (0, 0, 1))
    with pytest.raises(SpecError, match="compute before transposing"):
        xp.argmax(x)


@pytest.mark.parametrize(
    "key",
    [0, -1, (2, 1), slice(1, 3), (slice(None), slice(None, None, -1)), (Ellipsis, 0), (slice(None), None, 1), Ellipsis],
    ids=str,
)
def test_indexing(key: Any) -> None:
    for x in (stream(), xp.asarray(ROWS)):
        np.testing.assert_array_equal(value(x[key]), ROWS[key])
        assert x[key].shape == ROWS[key].shape


def test_indexing_by_arrays() -> None:
    x, resident = stream(), xp.asarray(ROWS)
    np.testing.assert_array_equal(value(x[x[:, 0] > 0]), ROWS[ROWS[:, 0] > 0])
    assert x[x[:, 0] > 0].shape == (None, 3)
    np.testing.assert_array_equal(value(x[:, xp.asarray([2, 0])]), ROWS[:, [2, 0]])
    np.testing.assert_array_equal(value(resident[xp.asarray([2, -1]), ...]), ROWS[[2, -1]])
    np.testing.assert_array_equal(value(resident[xp.asarray(1), xp.asarray(2)]), ROWS[1, 2])
    with pytest.raises(IndexError):
        resident[4]
    with pytest.raises(SpecIndexError):
        resident[0, 0, 0]


def test_constants() -> None:
    assert (xp.pi, xp.e, xp.inf, xp.newaxis) == (math.pi, math.e, math.inf, None)
    assert math.isnan(xp.nan)
