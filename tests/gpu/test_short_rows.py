"""Rows of few numbers, lane by lane: the bits of rows walked one by one (small batches are) and of NumPy's backend."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import Element
from flowcompute.gpu.backend import OpenCLBackend
from flowcompute.gpu.device import select_device
from flowcompute.graph.graph import build_graph
from flowcompute.planner.plan import Plan
from flowcompute.planner.planner import make_plan
from flowcompute.runtime.run import start
from flowcompute.strategy import Config
from tests.gpu.shapes import gpu_shaped

DTYPES = [np.dtype(name) for name in ("f4", "f8", "i4", "i1", "?", "f2")] + [np.dtype(ml_dtypes.bfloat16)]
ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40]
RECORDS = 16 * 5 + 7


def numbers(shape: tuple[int, ...], dtype: Any = "f4", seed: int = 0, odd: bool = True) -> np.ndarray:
    """Numbers with special ones strewn in, many of them equal."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind in "bi":
        return rng.integers(0 if dtype.kind == "b" else -100, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    values = np.round(rng.standard_normal(shape) * 4, 1)
    if odd:
        values = np.where(rng.random(shape) < 0.1, rng.choice(ODD, shape), values)
    return values.astype(np.float32).astype(dtype)


def same(left: Any, right: Any) -> bool:
    """Whether arrays have the same dtype, shape and bits; any NaN is like any other."""
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    word = np.dtype(f"u{left.dtype.itemsize}")
    equal = np.ascontiguousarray(left).view(word) == np.ascontiguousarray(right).view(word)
    if left.dtype.kind not in "biu":
        equal |= np.isnan(left) & np.isnan(right)
    return bool(equal.all())


def resolved(roots: list[Element], **options: Any) -> list[Any]:
    results = fc.resolve(*roots, **options)
    return list(results) if len(roots) > 1 else [results]


def is_short(*roots: Element) -> bool:
    """Whether all kernels of these roots take neighbouring rows in their lanes."""
    plan = fc.plan(*roots)
    return all("short" in kernel.notes for kernel in kernels(plan))


def kernels(plan: Plan) -> list[Any]:
    return [kernel for step in plan.steps if (kernel := getattr(step, "kernel", None)) is not None]


def check(roots: list[Element], *, exact: bool = True, short: bool = True) -> list[Any]:
    """Whole vectors of rows, rows one by one, a rest in every batch, and the NumPy backend give the same bits."""
    assert is_short(*roots) is short
    whole = resolved(roots)
    widest = max(root.spec.item_bytes for root in roots)
    for records in (1, 16 + 5):
        strategy = fc.Strategy(batch_bytes=records * widest, items_per_work_item=None if records == 1 else 1)
        for root, one, other in zip(roots, whole, resolved(roots, strategy=strategy), strict=True):
            assert same(one, other), (root, records)
    if exact:
        for root, one, other in zip(roots, whole, resolved(roots, device="numpy"), strict=True):
            assert same(one, other), root
    return whole
