"""Slices of records for folds whose state is kept on the host."""

from __future__ import annotations

import numpy as np

from flowcompute.ir import SLICE_NUMBERS


def slices(values: np.ndarray, numbers: int) -> list[slice]:
    """Return consecutive records, each time about `SLICE_NUMBERS` numbers."""
    step = max(1, SLICE_NUMBERS // max(numbers, 1))
    return [slice(first, min(first + step, len(values))) for first in range(0, len(values), step)]
