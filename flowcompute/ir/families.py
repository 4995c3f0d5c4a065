"""Kernels by the knobs that they have."""

from __future__ import annotations

from typing import Literal

Family = Literal[
    "map", "numbers", "rows", "short rows", "team rows", "long rows", "columns", "matmul", "attention",
    "tensor attention", "scan", "number scan", "wide scan", "column scan", "walk", "tiled walk", "fixed",
]  # fmt: skip
"""Kernels by the knobs they have; those that are "fixed" have none."""
