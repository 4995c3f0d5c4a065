"""How many random programs a test draws."""

from __future__ import annotations

from hypothesis import settings

_FULL = 5000


def cases(in_ci: int) -> settings:
    """`in_ci` cases by default, and the same multiple of them as other tests with HYPOTHESIS_PROFILE=full."""
    full = settings().max_examples >= _FULL
    return settings(max_examples=in_ci * _FULL // 200 if full else in_ci)
