"""Trials in words."""

from __future__ import annotations

import pytest

from flowcompute.strategy import Trial, Tuning, compared


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (-0.569, "57 % slower"),
        (0.0251, "2.5 % faster"),
        (-3.5, "350 % slower"),
        (0.0996, "10 % faster"),
        (0.0994, "9.9 % faster"),
        (0.0004, "as fast"),
        (-0.0004, "as fast"),
        (0.0, "as fast"),
    ],
)
def test_a_gain_in_words(gain: float, text: str) -> None:
    assert compared(gain) == text


def test_a_trial_in_words() -> None:
    once = Trial("k0", "unroll=2", -0.569, None, 1, "not better")
    assert str(once).split() == ["k0", "unroll=2", "57", "%", "slower,", "1", "measurement", "not", "better"]
    often = Trial("run", "depth=3", 0.125, 0.01, 1200, "kept")
    assert "12 % faster, give or take 1.0 %, 1,200 measurements" in str(often)
    assert "kept: run depth=3 (12 % faster)" in str(Tuning("tuned", 1, 2.0, 0.125, (often,)))
