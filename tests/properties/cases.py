"""How many random programs a test draws."""

from __future__ import annotations

from hypothesis import settings

_FULL, _QUICK = 5000, 20


def cases(in_ci: int) -> settings:
    """`in_ci` cases by default, and with another HYPOTHESIS_PROFILE as many more or fewer as other tests draw."""
    most = settings().max_examples
    if most >= _FULL:
        return settings(max_examples=in_ci * _FULL // 200)
    return settings(max_examples=max(in_ci // 5, 1) if most <= _QUICK else in_ci)
