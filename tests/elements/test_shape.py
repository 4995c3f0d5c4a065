"""Item axes seen in another way: NumPy's meaning on every backend, in any batch; what the stream axis refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.compute import Constant
from flowcompute.errors import RunError, SpecError
from flowcompute.spec import SUPPORTED_DTYPES
from tests.elements.drawn_views import item_shapes, views
from tests.support.slow import slow_but

Form = Callable[[Any], Any]
LENGTH = 65
CUBE = (np.arange(LENGTH * 12) % 101 - 50).astype(np.float32).reshape(LENGTH, 3, 4)
BATCHES = (100, 1 << 20)


def same(element: fc.Element, wanted: np.ndarray) -> None:
    """The very numbers, on both backends and for every batch size."""
    assert element.shape == wanted.shape, (element.spec, wanted.shape)
    assert element.dtype == wanted.dtype
    for device in ("numpy", "cpu"):
        for batch_bytes in BATCHES:
            got = element.resolve(device=device, strategy=fc.Strategy(batch_bytes=batch_bytes))
            np.testing.assert_array_equal(got, wanted, strict=True)


# -- views ----------------------------------------------------------------------------------

VIEWS: dict[str, tuple[Form, Form]] = {
    "cannot raise an integer to a negative power": (lambda x: x[:, 1], lambda a: a[:, 1]),
    "a NumPy integer from the end": (lambda x: x[:, np.int8(-1)], lambda a: a[:, -1]),
    "an array of one integer": (lambda x: x[..., np.array(2)], lambda a: a[..., 2]),
    "slices backwards": (lambda x: x[:, ::-1, 3:0:-2], lambda a: a[:, ::-1, 3:0:-2]),
    "slices beyond the end": (lambda x: x[:, -9:9, 1:99], lambda a: a[:, -9:9, 1:99]),
    "an ellipsis": (lambda x: x[..., 0], lambda a: a[..., 0]),
    "an ellipsis that stands for nothing": (lambda x: x[:, 0, ..., 0], lambda a: a[:, 0, 0]),
    "new axes": (lambda x: x[:, None, :, None], lambda a: a[:, None, :, None]),
    "nothing at all": (lambda x: x[()], lambda a: a),
    "cannot pin an array of Python objects": (lambda x: x[:, 2:1], lambda a: a[:, 2:1]),
    "a slice of the stream too": (lambda x: x[7:60:3, 1], lambda a: a[7:60:3, 1]),
    "cannot index an axis by this key": (lambda x: x[:, [2, 0, -1]], lambda a: a[:, [2, 0, -1]]),
    "an index beside a vector": (lambda x: x[:, 1, [3, 0]], lambda a: a[:, 1, [3, 0]]),
    "a vector beside an index": (lambda x: x[:, np.array([1, 1]), 2], lambda a: a[:, [1, 1], 2]),
    "a vector and a new axis": (lambda x: x[:, None, :, [0, 1]], lambda a: a[:, None, :, [0, 1]]),
    "an element of indices": (lambda x: x[:, fc.constant([1, 0])], lambda a: a[:, [1, 0]]),
    "cannot select numbers of items by this mask": (
        lambda x: x[:, [True, False, True]],
        lambda a: a[:, [True, False, True]],
    ),
    "take nothing": (lambda x: fc.take(x, [], axis=1), lambda a: a[:, []]),
    "take unsigned": (lambda x: fc.take(x, np.array([2, 2], "u1"), axis=-1), lambda a: a[..., [2, 2]]),
    "reshape": (lambda x: fc.reshape(x, (-1, 2, 6)), lambda a: a.reshape(-1, 2, 6)),
    "reshape by what is left": (lambda x: fc.reshape(x, (LENGTH, -1)), lambda a: a.reshape(LENGTH, -1)),
    "a reshape that must copy": (
        lambda x: fc.reshape(fc.permute_dims(x, (0, 2, 1)), (-1, 12)),
        lambda a: a.transpose(0, 2, 1).reshape(-1, 12),
    ),
    "permute_dims": (lambda x: fc.permute_dims(x, (0, -1, 1)), lambda a: a.transpose(0, 2, 1)),
    "matrix transpose": (lambda x: x.mT, lambda a: a.transpose(0, 2, 1)),
    "moveaxis": (lambda x: fc.moveaxis(x, -1, 1), lambda a: np.moveaxis(a, -1, 1)),
    "moveaxis of two": (lambda x: fc.moveaxis(x, (1, 2), (2, 1)), lambda a: np.moveaxis(a, (1, 2), (2, 1))),
    "flip": (lambda x: fc.flip(x, 1), lambda a: np.flip(a, 1)),
    "flip both": (lambda x: fc.flip(x, (1, -1)), lambda a: np.flip(a, (1, 2))),
    "expand_dims": (lambda x: fc.expand_dims(x, axis=-1), lambda a: a[..., None]),
    "squeeze": (lambda x: fc.squeeze(x[:, :1], axis=1), lambda a: a[:, 0]),
    "broadcast_to": (
        lambda x: fc.broadcast_to(x[:, :1], (-1, 5, 4)),
        lambda a: np.broadcast_to(a[:, :1], (LENGTH, 5, 4)),
    ),
    "stack": (lambda x: fc.stack([x, -x, x[:, ::-1]], axis=-1), lambda a: np.stack([a, -a, a[:, ::-1]], -1)),
    "concat": (lambda x: fc.concat([x, x[:, :1] * 2], axis=1), lambda a: np.concatenate([a, a[:, :1] * 2], 1)),
    "concat promotes": (
        lambda x: fc.concat([x, x.astype("int8")], axis=2),
        lambda a: np.concatenate([a, a.astype("i1")], 2),
    ),
}


@pytest.mark.parametrize("form", VIEWS)
def test_as_numpy(form: str) -> None:
    on_element, on_array = VIEWS[form]
    same(on_element(fc.source(CUBE)), on_array(CUBE))


@pytest.mark.parametrize("form", slow_but(list(VIEWS)[::4], VIEWS))
def test_as_numpy_of_what_is_computed_and_on(form: str) -> None:
    """Views between kernels: of a value that is needed whole, and with a map and a fold after them."""
    on_element, on_array = VIEWS[form]
    doubled = fc.source(CUBE) * 2
    seen, wanted = on_element(doubled) + 1, on_array(CUBE * 2) + 1
    for device in ("numpy", "cpu"):
        whole, mapped, total = fc.resolve(doubled, seen, seen.sum(axis=0), device=device)
        np.testing.assert_array_equal(whole, CUBE * 2)
        np.testing.assert_array_equal(mapped, wanted)
        # Whole numbers below 2^24 are added without error.
        np.testing.assert_array_equal(total, wanted.sum(axis=0))


@settings(max_examples=10)
@given(st.data())
def test_random_views_in_kernels(data: st.DataObject) -> None:
    """Maps, row reductions and folds of columns read views where they lie."""
    shape = data.draw(item_shapes(), label="item")
    length = data.draw(st.sampled_from([0, 1, 5, 33]), label="length")
    array = np.random.default_rng(0).integers(-9, 9, (length, *shape)).astype(np.float32)
    element, wanted = fc.source(array), array
    for _ in range(data.draw(st.integers(1, 3), label="views")):
        if not length:
            break
        view = data.draw(views(wanted.shape[1:]), label="view")
        element, wanted = view.of(element), view.of(wanted)
    axes = tuple(range(1, wanted.ndim))
    roots = [element * 2, element.sum(axis=axes) if axes else element, element.sum(axis=0)]
    expected = [wanted * 2, wanted.sum(axis=axes) if axes else wanted, wanted.sum(axis=0)]
    for result, one in zip(fc.resolve(*roots, device="cpu"), expected, strict=True):
        np.testing.assert_array_equal(result, one)


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype_and_every_bit(dtype: np.dtype) -> None:
    """A view moves bits: signs of zero and payloads of NaN stay what they are."""
    rng = np.random.default_rng(1)
    size = dtype.itemsize
    bits = rng.integers(0, 2 if dtype == bool else 256, (130, 3, 2, size)).astype(np.uint8)
    array = bits.view(dtype)[..., 0]
    wanted = array[:, ::-1, 1]
    got = fc.source(array)[:, ::-1, 1].resolve(device="cpu")
    assert got.tobytes() == wanted.tobytes()


def test_resident_values_are_seen_alike() -> None:
    constant = fc.constant(CUBE[:5])
    folded = fc.source(CUBE).sum(axis=0)
    total = CUBE.sum(axis=0)
    pairs: list[tuple[fc.Element, np.ndarray]] = [
        (constant[1, ::-1], CUBE[1, ::-1]),
        (constant[None, ..., 0], CUBE[:5][None, ..., 0]),
        (fc.flip(constant), np.flip(CUBE[:5])),
        (fc.reshape(constant, -1), CUBE[:5].reshape(-1)),
        (fc.permute_dims(constant, (2, 0, 1)), CUBE[:5].transpose(2, 0, 1)),
        (fc.broadcast_to(constant[0, 0], (2, 4)), np.broadcast_to(CUBE[0, 0], (2, 4))),
        (folded[::-1, 0], total[::-1, 0]),
        (folded.T * 2, total.T * 2),
        (fc.stack([folded, folded[::-1]]), np.stack([total, total[::-1]])),
        (fc.concat([folded, constant[0]], axis=1), np.concatenate([total, CUBE[0]], 1)),
        (fc.take(folded, [1, 0], axis=0), total[[1, 0]]),
    ]
    for device in ("numpy", "cpu"):
        results = fc.resolve(*(element for element, _ in pairs), device=device)
        for result, (element, wanted) in zip(results, pairs, strict=True):
            assert (result.shape, result.dtype) == (element.shape, element.dtype)
            np.testing.assert_array_equal(result, wanted)
    assert isinstance(constant[1:], Constant)


def test_records_are_residents() -> None:
    x = fc.source(CUBE)
    for place in (0, 5, LENGTH - 1, -1, -LENGTH):
        same(x[place], CUBE[place])
    same(x[3, 1, ::-1], CUBE[3, 1, ::-1])
    same(x - x[-1], CUBE - CUBE[-1])
    unknown = x[x[:, 0, 0] > 0]
    np.testing.assert_array_equal(unknown[-1].resolve(), CUBE[CUBE[:, 0, 0] > 0][-1])
    np.testing.assert_array_equal(unknown[2, 1].resolve(), CUBE[CUBE[:, 0, 0] > 0][2, 1])


def test_masks_choose_records() -> None:
    x, chosen = fc.source(CUBE), CUBE[:, 0, 0] > 0
    for mask in (x[:, 0, 0] > 0, chosen, list(chosen), fc.constant(chosen)):
        np.testing.assert_array_equal(x[mask].resolve(), CUBE[chosen])
        np.testing.assert_array_equal(x[mask, :, 1].resolve(), CUBE[chosen][:, :, 1])
    np.testing.assert_array_equal(fc.source(CUBE[:, 0, 0])[..., chosen].resolve(), CUBE[chosen][:, 0, 0])


def test_take_where_a_fold_says() -> None:
    x = fc.source(CUBE[:, 0])
    loudest = fc.argmax(x.var(axis=0))
    for device in ("numpy", "cpu"):
        got = x[:, loudest[None]].resolve(device=device)
        np.testing.assert_array_equal(got, CUBE[:, 0, [CUBE[:, 0].var(axis=0).argmax()]])


def test_take_beyond_the_end_shows_when_it_is_known() -> None:
    x = fc.source(CUBE, name="cube")
    for device in ("numpy", "cpu"):
        with pytest.raises(RunError, match="out of range") as caught:
            fc.take(x, fc.constant([1]) * 3, axis=1).resolve(device=device)
        assert (caught.value.got, caught.value.expected) == ("3", "-3 to 2")


# -- what is refused --------------------------------------------------------------------------

REFUSED: dict[str, tuple[Form, str]] = {
    "too many": (lambda x: x[0, 0, 0, 0], "cannot index so many axes"),
    "two ellipses": (lambda x: x[..., ...], "cannot place two ellipses in an index"),
    "beyond an item axis": (lambda x: x[:, 3], "-3 to 2"),
    "beyond the stream": (lambda x: x[LENGTH], f"-{LENGTH} to {LENGTH - 1}"),
    "a bool": (lambda x: x[True], "bool True"),
    "text": (lambda x: x["a"], "str 'a'"),
    "a fraction": (lambda x: x[:, 1.0], "float 1.0"),
    "a fraction in a slice": (lambda x: x[:, 1.0:], "float 1.0"),
    "a step of nothing": (lambda x: x[:, ::0], "cannot slice by a step of 0"),
    "a stream backwards": (lambda x: x[::-1], "x[:, ::-1]"),
    "write the stream to a file, and index that": (lambda x: x[[1, 0]], "write the stream to a file, and index that"),
    "an axis before the stream": (lambda x: x[None], "x[:, None]"),
    "two vectors": (lambda x: x[:, [0, 1], [0, 1]], "step by step"),
    "a vector apart from an index": (lambda x: x[1, :, [0]], "step by step"),
    "a mask and a vector": (lambda x: x[x[:, 0, 0] > 0, [0, 1]], "step by step"),
    "a mask of numbers": (lambda x: x[x > 0], "reduce the items first"),
    "a mask of another length": (lambda x: x[:, [True, False]], "bool(3,)"),
    "flip the stream": (lambda x: fc.flip(x, 0), "axis 0, the stream"),
    "flip all": (lambda x: fc.flip(x), "axis 0, the stream"),
    "flip a stream of numbers": (lambda x: fc.flip(x[:, 0, 0], -1), "items that have axes"),
    "take along the stream": (lambda x: fc.take(x, [0], axis=0), "axis 0, the stream"),
    "take without an axis": (lambda x: fc.take(x, [0]), "axis= for"),
    "take what is not there": (lambda x: fc.take(x, [3], axis=1), "-3 to 2"),
    "take by a stream": (lambda x: fc.take(x, x[:, 0, 0].astype("int32"), axis=1), "resident integers"),
    "take by fractions": (lambda x: fc.take(x, [1.0], axis=1), "resident integers"),
    "reshape the stream": (lambda x: fc.reshape(x, (12, LENGTH)), "fc.cut"),
    "reshape to other numbers": (lambda x: fc.reshape(x, (-1, 5)), "12 numbers"),
    "reshape to fractions": (lambda x: fc.reshape(x, (-1, 12.0)), "integers"),
    "move the stream": (lambda x: fc.permute_dims(x, (1, 0, 2)), "cannot move the stream away from axis 0"),
    "an order that is none": (lambda x: fc.permute_dims(x, (0, 1, 1)), "cannot take axes="),
    "moveaxis of the stream": (lambda x: fc.moveaxis(x, 0, 1), "cannot move the stream away from axis 0"),
    "moveaxis to fewer places": (lambda x: fc.moveaxis(x, (1, 2), 1), "cannot move axes to another number of places"),
    "expand before the stream": (lambda x: fc.expand_dims(x, axis=0), "cannot insert an axis before the stream"),
    "expand beyond": (lambda x: fc.expand_dims(x, axis=4), "cannot insert an axis"),
    "squeeze what is wide": (lambda x: fc.squeeze(x, axis=1), "size 1"),
    "squeeze the stream": (lambda x: fc.squeeze(x, axis=0), "axis 0, the stream"),
    "broadcast the stream": (lambda x: fc.broadcast_to(x, (3, 4)), "begins with -1"),
    "broadcast a wide axis": (lambda x: fc.broadcast_to(x, (-1, 3, 8)), "cannot broadcast to this shape"),
    "broadcast to new axes": (lambda x: fc.broadcast_to(x, (-1, 2, 3, 4)), "cannot broadcast to this shape"),
    "stack along the stream": (lambda x: fc.stack([x, x]), "fc.concat"),
    "stack unequal items": (lambda x: fc.stack([x, x[:, 1:]], axis=1), "cannot stack values of different shape"),
    "stack unequal lengths": (lambda x: fc.stack([x, x[1:]], axis=1), "different length"),
    "stack a stream and a number": (lambda x: fc.stack([x, 1.0], axis=1), "another rank"),
    "stack nothing": (lambda x: fc.stack([]), "at least one"),
    "concat what differs": (
        lambda x: fc.concat([x, x[:, :, 1:]], axis=1),
        "cannot join values that differ in another axis",
    ),
    "concat of unequal rank": (lambda x: fc.concat([x, x[:, 0]], axis=1), "cannot join values of different rank"),
    "concat without a common dtype": (
        lambda x: fc.concat([x.astype("bfloat16"), x.astype("int16")], axis=1),
        "cannot find a common dtype",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(case: str) -> None:
    wrong, words = REFUSED[case]
    with pytest.raises(SpecError) as caught:
        wrong(fc.source(CUBE))
    assert words in str(caught.value)
    assert __file__.rsplit("/", 1)[1] in str(caught.value), "it says where"


def test_a_computed_value_of_one_number_loses_all_axes() -> None:
    x = fc.add(fc.constant(np.ones((1, 1), np.float32)), 1)
    for device in ("numpy", "cpu"):
        np.testing.assert_array_equal(fc.reshape(x, ()).resolve(device=device), np.float32(2), strict=True)
