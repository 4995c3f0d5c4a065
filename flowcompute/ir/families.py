"""Families of kernels, by their knobs."""

from __future__ import annotations

from typing import Literal

Family = Literal[
    "map", "numbers", "rows", "short rows", "team rows", "long rows", "columns", "matmul", "attention",
    "tensor attention", "scan", "number scan", "wide scan", "column scan", "walk", "tiled walk", "fixed",
]  # fmt: skip
"""Families of kernels, by their knobs. Kernels of the family "fixed" have none."""
