"""Reductions that are the same in any order are taken in the order of memory."""

from __future__ import annotations

import numpy as np

import flowcompute as fc


def test_extremes_and_whole_numbers_have_the_bits_of_the_reference() -> None:
    rng = np.random.default_rng(3)
    numbers = rng.standard_normal((9, 1361)).astype(np.float32)
    numbers[1, 1360] = numbers[2, 0] = numbers[3, 700] = np.nan
    numbers[4], numbers[5], numbers[6] = -0.0, 0.0, -np.inf
    numbers[4, 1359] = 0.0
    numbers[5, 64] = -0.0
    x, whole = fc.source(numbers), fc.source(rng.integers(-128, 128, numbers.shape, dtype=np.int8))
    for length in (1361, 33):
        rows = x[:, -length:]
        roots = [
            *(rows.max(axis=1), rows.min(axis=1), (rows > 3).any(axis=1), (rows > -3).all(axis=1)),
            *(whole[:, :length].sum(axis=1), whole[:, :length].max(axis=1)),
            fc.vecdot(whole[:, :length], whole[:, -length:], axis=1),
            *(rows.argmax(axis=1), rows.argmin(axis=1), whole[:, :length].argmax(axis=1)),
        ]
        for root, own, right in zip(roots, fc.resolve(*roots), fc.resolve(*roots, device="numpy"), strict=True):
            assert own.tobytes() == right.tobytes(), (root, length)


def test_an_extreme_and_its_place_share_a_loop() -> None:
    rng = np.random.default_rng(5)
    for length in (20, 200):
        numbers = rng.integers(0, 5, (7, length)).astype(np.float64)
        numbers[0], numbers[1, -1], numbers[2, ::2] = -np.inf, np.nan, np.inf
        rows = fc.source(numbers)
        plan = fc.plan(rows.max(axis=1), rows.argmax(axis=1), device="cpu")
        assert len(plan.kernels) == 1
        largest, places = fc.resolve(rows.max(axis=1), rows.argmax(axis=1), device="cpu")
        np.testing.assert_array_equal(largest, numbers.max(axis=1))
        np.testing.assert_array_equal(places, numbers.argmax(axis=1))


def test_extremes_of_a_stream_of_numbers() -> None:
    noise = np.random.default_rng(4).standard_normal(5000).astype(np.float32)
    for place, extreme in ((0, 9), (1047, -9), (4999, 9), (2000, np.nan)):
        numbers = noise.copy()
        numbers[place] = extreme
        x = fc.source(numbers)
        np.testing.assert_array_equal(fc.resolve(x.max(), x.min()), (numbers.max(), numbers.min()))
        np.testing.assert_array_equal(fc.resolve(x.argmax(), x.argmin()), (numbers.argmax(), numbers.argmin()))
