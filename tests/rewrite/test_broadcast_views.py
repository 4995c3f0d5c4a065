"""Views of resident values that are broadcast: what is broadcast is viewed, so that nothing large is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc

HUGE = 1 << 36


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_part_of_huge_zeros_is_small(device: str) -> None:
    x = fc.zeros((HUGE, 1 << 20), dtype="int16")
    assert x[0, :4].resolve(device=device).tolist() == [0] * 4
    assert x.mT[3:5, :2].resolve(device=device).shape == (2, 2)
    assert x[:0].resolve(device=device).shape == (0, 1 << 20)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_what_is_computed_of_huge_zeros_is_computed_once(device: str) -> None:
    x = fc.zeros((HUGE, 1 << 20), dtype="float32")
    y = fc.where(x == 0, fc.sqrt(x + 2), fc.ones((1 << 20,)) * 5) * fc.constant(3)
    np.testing.assert_allclose(y[0, :4].resolve(device=device), [3 * 2**0.5] * 4, rtol=1e-6)
    z = (x[:8, :8] + fc.constant(np.arange(8.0, dtype="f4"))) * 2
    assert z[1, 2:4].resolve(device=device, memory="64KiB").tolist() == [4, 6]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_numbers_that_follow_from_their_places_are_computed_all(device: str) -> None:
    draws = fc.random.uniform(6, seed=1)
    x = fc.zeros((3,)) + 1
    np.testing.assert_array_equal((draws[:3] * x.sum()).resolve(device=device), draws.resolve(device=device)[:3] * 3)
    assert (fc.source(np.ones((5, 3))) + x).sum().resolve(device=device) == 30


def test_the_budget_holds_the_part_alone() -> None:
    x = fc.ones((HUGE,))[: 1 << 10] + 1
    assert x.resolve(device="numpy", memory="64KiB").tolist() == [2] * (1 << 10)


def test_who_asks_for_all_of_it_is_still_refused() -> None:
    x = fc.zeros((HUGE, 1 << 20))
    with pytest.raises(fc.PlanError, match="zeros"):
        fc.plan(x[0, :4], x.sum(), device="numpy")


def test_names_and_lines_stay() -> None:
    x = fc.broadcast_to(fc.constant(np.arange(4.0)), (HUGE, 4))[3].named("row")
    plan = x.plan(device="numpy")
    assert "row" in str(plan)
    assert x.resolve(device="numpy").tolist() == [0, 1, 2, 3]


@given(st.data())
def test_any_view_of_any_broadcast_has_its_numbers(data: st.DataObject) -> None:
    base = data.draw(st.lists(st.sampled_from([1, 3]), max_size=3).map(tuple), label="base")
    array = np.arange(int(np.prod(base)), dtype=np.int32).reshape(base)
    sizes = st.sampled_from([1, 2, 1 << 18])
    wider = tuple(size if size > 1 else data.draw(sizes) for size in base)
    shape = (*data.draw(st.lists(sizes, max_size=3 - len(base))), *wider)
    x, wanted = fc.broadcast_to(fc.constant(array), shape), np.broadcast_to(array, shape)
    for _ in range(data.draw(st.integers(1, 3), label="views")):
        kind = data.draw(st.sampled_from(["index", "flip", "permute", "lines"]))
        if kind == "index":
            index = tuple(data.draw(_keys(size)) for size in wanted.shape)
            x, wanted = x[index], wanted[index]
        elif kind == "flip" and wanted.ndim:
            axis = data.draw(st.integers(0, wanted.ndim - 1))
            x, wanted = fc.flip(x, axis=axis), np.flip(wanted, axis)
        elif kind == "permute":
            axes = tuple(data.draw(st.permutations(range(wanted.ndim))))
            x, wanted = fc.permute_dims(x, axes), np.permute_dims(wanted, axes)
        elif kind == "lines" and array.ndim == 0:
            x, wanted = fc.reshape(x, (-1, 1)), wanted.reshape(-1, 1)
    part = (slice(0, 3),) * wanted.ndim
    found = x[part].resolve(device="numpy", memory="1MiB", tune=False, progress=False)
    np.testing.assert_array_equal(found, wanted[part])


def _keys(size: int) -> st.SearchStrategy[int | slice]:
    """Draw an index along an axis of this size."""
    if size == 0:
        return st.just(slice(None))
    step = st.sampled_from([1, 2, max(1, size // 3)])
    return st.integers(-size, size - 1) | st.builds(slice, st.integers(0, size), st.integers(0, size), step)
