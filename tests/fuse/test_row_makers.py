"""Norms before quantised products are made in the launch of the products, and keep their bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from tests.fuse.test_siblings import INNER, resolved, weights

SCALES = fc.constant(np.linspace(0.5, 2, INNER, dtype=np.float32))


def rows(records: int, *shape: int) -> np.ndarray:
    made = np.random.default_rng(records).standard_normal((records, *shape, INNER)).astype(np.float32)
    made[0].flat[3] = np.nan
    made[-1].flat[5] = 1e30
    return made


def root_mean_square(x: Element) -> Element:
    return fc.nn.rms_norm(x, weight=SCALES)


def layer(x: Element) -> Element:
    return fc.nn.layer_norm(x, weight=SCALES, bias=SCALES)


def products(x: Element) -> list[Element]:
    """Siblings of several widths and formats."""
    return [fc.tanh(x @ weights(1, 80).T), x @ weights(2, 17, "Q4_1").T]


def one_product(x: Element) -> list[Element]:
    return [x @ weights(1, 33).T + 1]


@pytest.mark.parametrize("made", [products, one_product])
@pytest.mark.parametrize("norm", [root_mean_square, layer])
def test_a_norm_is_made_by_the_products_behind_it(
    norm: Callable[[Element], Element], made: Callable[[Element], list[Element]]
) -> None:
    data = rows(70)
    stored = norm(fc.source(data)).resolve(device="cpu", progress=False)
    whole = made(norm(fc.source(data)))
    wanted = resolved(made(fc.source(stored)), "cpu")
    assert len(fc.plan(*whole, device="cpu").kernels) == 1
    assert resolved(whole, "cpu") == wanted
    # Eight records, and one, for which each work-group makes the rows.
    for records in (8, 1):
        assert resolved(whole, "cpu", batch_bytes=records * INNER * 4) == wanted


@pytest.mark.parametrize(("shape", "records", "launches"), [((), 8, 1), ((), 9, 2), ((3,), 2, 1), ((3,), 3, 2)])
def test_few_rows_take_one_launch(shape: tuple[int, ...], records: int, launches: int) -> None:
    data = rows(records, *shape)
    run = fc.run(*products(root_mean_square(fc.source(data))), device="cpu")
    assert run.launches == launches
    stored = root_mean_square(fc.source(data)).resolve(device="cpu", progress=False)
    assert [one.tobytes() for one in run.values] == resolved(products(fc.source(stored)), "cpu")


@pytest.mark.parametrize(("shape", "few"), [((), "8 records"), ((3,), "2 records"), ((8,), "1 record")])
def test_plans_say_when_rows_are_stored(shape: tuple[int, ...], few: str) -> None:
    plan = fc.plan(*products(root_mean_square(fc.source(rows(2, *shape)))), device="cpu")
    told = [one.text for one in plan.reasons if "rms_norm" in one.text]
    assert told == [f"a launch of up to {few} makes rms_norm itself; of more, its first stage stores it"] * 2


def read_elsewhere(x: Element) -> list[Element]:
    return [x @ weights(1, 16).T, x * 2]


def is_a_result(x: Element) -> list[Element]:
    return [x @ weights(1, 16).T, x]


def of_floats(x: Element) -> list[Element]:
    return [x @ fc.constant(np.ones((INNER, 32), np.float32))]


def in_another_shape(x: Element) -> list[Element]:
    return [fc.reshape(x, (-1, 3, INNER // 3)) @ weights(1, 16, inner=INNER // 3).T]


@pytest.mark.parametrize("made", [read_elsewhere, is_a_result, of_floats, in_another_shape])
def test_a_norm_that_others_read_stays_a_kernel(made: Callable[[Element], list[Element]]) -> None:
    data = rows(5)
    results = made(root_mean_square(fc.source(data)))
    assert len(fc.plan(*results, device="cpu").kernels) >= 2
    stored = root_mean_square(fc.source(data)).resolve(device="cpu", progress=False)
    assert resolved(results, "cpu") == resolved(made(fc.source(stored)), "cpu")


def test_many_rows_of_a_record_stay_a_kernel() -> None:
    data = rows(2, 9)
    results = one_product(root_mean_square(fc.source(data)))
    assert len(fc.plan(*results, device="cpu").kernels) == 2


def test_a_flow_of_few_and_many_records_keeps_its_bits() -> None:
    data = rows(60)
    wanted = root_mean_square(fc.source(data)) @ weights(1, 33).T
    whole = wanted.resolve(device="cpu", progress=False)
    feed, start = fc.feed(shape=(INNER,), dtype="float32"), 0
    with (root_mean_square(feed) @ weights(1, 33).T).flow(device="cpu") as flow:
        for records in (20, *[1] * 6, 8, 9, *[1] * 6, 11):
            flow.send(data[start : start + records])
            np.testing.assert_array_equal(flow.receive(), whole[start : start + records])
            start += records
    assert start == 60
