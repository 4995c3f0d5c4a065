"""Formulas of `benchmarks.kernels` in C, by native.c."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measuring.chunks import aligned, column_moments
from benchmarks.measuring.workloads import COLUMNS, ROW, WEIGHT_COLUMNS
from benchmarks.peers.peer_c import PANEL, address_of, load_native

NATIVE = load_native()


def _mapped(kind: int, columns: int = 0) -> Callable[[np.ndarray, Any], Callable[[], Any]]:
    def prepare(x: np.ndarray, weight: Any) -> Callable[[], Any]:
        shape = (len(x), columns) if columns else x.shape
        out = aligned(math.prod(shape)).reshape(shape)
        weight_tiles = aligned(ROW * WEIGHT_COLUMNS)
        if weight is not None:
            weight_tiles[:] = weight.reshape(ROW, -1, PANEL).transpose(1, 0, 2).reshape(-1)
        ends = address_of(x), address_of(out), ctypes.c_long(x.nbytes), kind, address_of(weight_tiles)

        def run() -> np.ndarray:
            NATIVE.map_memory(*ends)
            return out

        return run

    return prepare


def _columns(x: np.ndarray, _: Any) -> Callable[[], Any]:
    def run() -> Any:
        sums, squares = np.zeros(COLUMNS), np.zeros(COLUMNS)
        zero, size = ctypes.c_long(0), ctypes.c_long(x.nbytes)
        NATIVE.column_sums(-1, address_of(x), zero, size, address_of(sums), address_of(squares))
        return column_moments(len(x), iter([(sums, squares)]), COLUMNS)

    return run


FORMULAS = {"W1": _mapped(1), "W3": _mapped(3), "W4": _mapped(4, WEIGHT_COLUMNS), "W5": _columns}
