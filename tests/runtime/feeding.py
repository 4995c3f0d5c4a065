"""What tests of flows send, and what must not be left behind."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

import flowcompute as fc

X = np.random.default_rng(7).integers(-9, 9, (60, 3)).astype(np.float32) / 4


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def feed() -> fc.Element:
    return fc.feed((3,), "float32")


def failing(x: Any) -> Any:
    """A host function that fails at numbers of 7."""

    def check(array: np.ndarray) -> np.ndarray:
        if (array == 7).any():
            raise ValueError("seven")
        return array

    return fc.host(check, x, shape=(), dtype="float32")


def assert_no_threads() -> None:
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("flowcompute")] == []
