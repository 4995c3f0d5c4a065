"""Choices by a number: they are computed once the number is known, not by the kernels that make the number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element

HELD = np.linspace(-2, 2, 50_000, dtype=np.float32).reshape(50, -1)


def stored(*made: Element) -> list[str]:
    """Names of what kernels store."""
    plan = fc.plan(*made, device="cpu")
    every = [one for kernel in plan.kernels for one in kernel.ir.arguments if one.kind == "output"]
    return [plan.graph.nodes[one.value].name for one in every]


def updated(gradient: np.ndarray) -> tuple[Any, ...]:
    """A value and its momentum behind a step that counts only if the gradient is finite, and whether it is."""
    p, v, g = fc.constant(HELD), fc.constant(HELD * 2), fc.constant(gradient) * 0.5
    sound = fc.all(fc.isfinite(g))
    momentum = (v * 0.5 + g / 3).named("momentum")
    return fc.where(sound, (p - momentum).named("candidate"), p), fc.where(sound, momentum, v), sound


@pytest.mark.parametrize("worst", [1.0, np.inf, np.nan])
def test_candidates_are_not_stored(worst: float) -> None:
    gradient = np.cos(HELD)
    gradient[3, 7] = worst
    made = updated(gradient)
    assert not {"candidate", "momentum"} & set(stored(*made))
    for one, other in zip(fc.resolve(*made, device="cpu"), fc.resolve(*made, device="numpy"), strict=True):
        assert one.tobytes() == other.tobytes()
    assert (fc.resolve(made[0]).tobytes() == HELD.tobytes()) == (not np.isfinite(worst))


def test_what_others_read_as_well_is_computed_at_once() -> None:
    p, g = fc.constant(HELD), fc.constant(np.cos(HELD)) * 0.5
    candidate = (p - g).named("candidate")
    made = [fc.where(fc.all(fc.isfinite(g)), candidate, p), fc.flip(candidate, axis=0)]
    assert "candidate" in stored(*made)


def test_what_a_number_of_others_chooses_does_not_wait() -> None:
    g = fc.constant(np.cos(HELD))
    small = fc.max(fc.abs(fc.constant(HELD))) < 1
    base = (g + 1).named("base")
    made = [base * 2, fc.where(small, base * 3, g)]
    assert "base" not in stored(*made)
    assert fc.resolve(made[1], device="cpu").tobytes() == np.cos(HELD).tobytes()


def test_single_numbers_do_not_wait() -> None:
    g = fc.constant(np.cos(HELD))
    length = fc.sum(g * g)
    made = fc.where(length > 2, 2 / length, 1.0)
    assert len(fc.plan(made, device="cpu").kernels) == len(fc.plan(length, device="cpu").kernels)
