"""Views of constants that are large: nothing is allocated before a plan has counted it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError

ONES = np.ones(100_000, np.float32)
LARGE: dict[str, Callable[[], fc.Element]] = {
    "pad": lambda: fc.pad(ONES, (0, 1 << 44)),
    "pad by the edge": lambda: fc.pad(ONES, (1 << 44, 1), mode="edge"),
    "unfold": lambda: fc.nn.unfold(np.ones(1 << 22, np.float32), 1 << 21, axis=0),
}


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("name", LARGE)
def test_a_plan_refuses_what_does_not_fit(name: str, device: str) -> None:
    made = LARGE[name]()
    with pytest.raises(PlanError, match="into the memory budget"):
        made.resolve(device=device, memory="64MiB")


def test_a_large_pad_has_the_numbers_of_a_small_one() -> None:
    count = 17 << 20
    made = fc.pad(np.arange(3, dtype=np.float32), (2, count), constant_values=5)
    assert made.shape == (count + 5,)
    got = made.resolve(device="numpy", memory="1GiB")
    np.testing.assert_array_equal(got[:6], np.array([5, 5, 0, 1, 2, 5], np.float32), strict=True)
    assert np.all(got[5:] == 5)
