"""Marks for parameters: `scripts/test` leaves some values to CI, and CI leaves some to the nightly script."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(kept: Iterable[Any], values: Iterable[Any], compiled: Iterable[Any] = ()) -> list[Any]:
    """Mark all values of a parameter as slow but for the kept ones, and those that are left to the nightly script."""
    later = list(compiled)
    made = _marked(kept, values, pytest.mark.slow)
    found = [pytest.param(*one.values, marks=pytest.mark.compiles) if one.values[0] in later else one for one in made]
    assert sum(one is not old for one, old in zip(found, made, strict=True)) == len(later), (
        "name what is among the values"
    )
    return found


def compiled_but(kept: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Mark all values as waiting for the compiler but for the kept ones. A tuple holds values of several parameters."""
    return _marked(kept, values, pytest.mark.compiles, several=True)


def _marked(kept: Iterable[Any], values: Iterable[Any], mark: Any, *, several: bool = False) -> list[Any]:
    few = list(kept)
    assert few, "keep one, or mark the test"
    made = [
        pytest.param(*(value if several and isinstance(value, tuple) else (value,)), marks=() if value in few else mark)
        for value in values
    ]
    assert sum(not one.marks for one in made) == len(few), "keep what is among the values"
    return made
