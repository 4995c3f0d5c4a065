"""How many random programs a test draws."""

from __future__ import annotations

from hypothesis import settings

_FULL, _QUICK = 5000, 20


def cases(count: int) -> settings:
    """Two fifths of `count` cases by default, with HYPOTHESIS_PROFILE=full 25 times `count`, with quick a fifth."""
    most = settings().max_examples
    if most >= _FULL:
        return settings(max_examples=count * _FULL // 200)
    return settings(max_examples=max(count // 5 if most <= _QUICK else count * 2 // 5, 1))
