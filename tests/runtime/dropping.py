"""Host functions that fail at given records, and what their dead-letter files say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.support.faulty_files import FaultyFiles

Function = Callable[..., Any]


def rows(length: int) -> np.ndarray:
    """Records that say which they are: their index, and a number that rounds."""
    return np.stack([np.arange(length, dtype="f8"), np.random.default_rng(length).normal(size=length)], axis=1)


def fails_at(bad: Iterable[int], how: str = "raise") -> Function:
    """Twice its argument, except for batches that hold one of these records."""
    marked = np.array(sorted(bad), dtype="f8")

    def twice(batch: np.ndarray) -> np.ndarray:
        broken = np.isin(batch[:, 0], marked)
        if broken.any():
            if how == "raise":
                raise ValueError(f"cannot use {batch[broken][0, 0]:g}")
            return {"dtype": batch.astype("f4"), "shape": batch[:-1], "rank": batch[:, 0], "object": object()}[how]
        return batch * 2

    return twice


def kept(data: np.ndarray, bad: Iterable[int]) -> np.ndarray:
    return np.delete(data, sorted(bad), axis=0) * 2


def batches(items: int) -> fc.Strategy:
    return fc.Strategy(batch_bytes=items * 16)


def run(*roots: Any, items: int = 10, **options: Any) -> Any:
    return fc.run(*roots, strategy=batches(items), progress=False, **{"device": "numpy", **options})


def dead_letters(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]


def written(path: Path) -> list[int]:
    return [letter["record"] for letter in dead_letters(path)]


def with_files(element: Any, files: FaultyFiles) -> Any:
    """The element with its dead-letter file written through other files."""
    element.freeze_fields(policy=replace(element.policy, files=files))
    return element


def dead(path: Path, bad: Iterable[int], length: int = 100, **options: Any) -> Any:
    return fc.host(
        fails_at(bad), fc.source(rows(length)), on_error="dead_letter", dead_letter=path, name="made", **options
    )
