"""Resident single numbers that do not depend on each other are computed by one kernel."""

from __future__ import annotations

import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element


def number(value: float, shape: tuple[int, ...] = (1,)) -> Element:
    """A number that is no literal of a kernel's text."""
    return fc.constant(np.full(shape, value, np.float32))


def bits(*made: Element) -> list[bytes]:
    return [one.tobytes() for one in fc.resolve(*made, device="cpu")]


def test_numbers_of_several_shapes_share_a_launch() -> None:
    a, b, c = number(0.5), number(np.nan, (1, 1)), number(-0.0, ())
    made = [fc.exp(a), fc.tanh(b) + 1, c * number(2.0, ())]
    assert len(fc.plan(*made, device="cpu").kernels) == 1
    assert bits(*made) == [one.tobytes() for one in fc.resolve(*made, device="numpy")]


def test_numbers_that_depend_on_each_other_through_another_kernel_stay_apart() -> None:
    x = fc.constant(np.linspace(0, 1, 300, dtype=np.float32))
    first = fc.exp(number(0.5, ()))
    largest = fc.max(fc.sin(x * first))
    made = [first, largest, fc.exp(number(1.5, ())), fc.tanh(fc.exp(largest) + 1)]
    assert len(fc.plan(*made, device="cpu").kernels) > 1
    assert bits(*made)[2] == bits(made[2], made[0])[0]
    for one, other in zip(fc.resolve(*made, device="cpu"), fc.resolve(*made, device="numpy"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
