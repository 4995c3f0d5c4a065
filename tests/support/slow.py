"""Cases that `scripts/test` leaves out and CI runs: they go the same way through the code as those that stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(kept: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Mark all values of a parameter as slow but for the kept ones."""
    few = list(kept)
    assert few, "keep one, or mark the test"
    made = [pytest.param(value, marks=() if value in few else pytest.mark.slow) for value in values]
    assert sum(not one.marks for one in made) == len(few), "keep what is among the values"
    return made
