"""Small streams that jobs of tests are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element

Build = Callable[[Path], "Element | tuple[Any, ...]"]


def rows(dtype: Any = "f4", shape: tuple[int, ...] = (12, 6)) -> Any:
    numbers = np.arange(math.prod(shape)).reshape(shape) % 7
    return fc.source((numbers - (0 if np.dtype(dtype).kind in "ub" else 3)).astype(dtype))


def numbers(dtype: Any = "f8") -> Any:
    return rows(dtype, (12,))


def items(*shape: int) -> Any:
    return rows("f4", (5, *shape))


def unknown() -> Any:
    x = numbers()
    return x[x > 0]
