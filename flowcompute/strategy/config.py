"""Config: the settings of a run that the user fixes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from flowcompute.errors import PlanError, short_repr
from flowcompute.imports import dataclass

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_MOST_BYTES = 1 << 63
_UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


Devices = str | Sequence[str]
"""One or more devices: see `device=` of `fc.plan`."""

Size = int | float | np.integer | str
"""A number of bytes, or text like "24MiB"."""

Precision = Literal["exact", "fast", "tf32x3"]
"""The arithmetic of a run; see `fc.plan`."""

Mode = Literal["reset", "cumulative"]
"""The records that the folds of a flow cover; see `fc.open_flow`."""


@dataclass(frozen=True)
class Config:
    """Settings that the user fixes.

    Attributes:
        memory_bytes: budget on the host.
        device: requested devices, best first: "auto", "numpy", "cpu", "gpu:1", or part of a name.
        precision: "exact" (IEEE, the default), "fast" (multiply-add may be contracted), or "tf32x3".
        by_hand: whether records are sent by hand, in batches of any size.
        resumable: whether checkpoints are taken, so that every batch must end where any backend can resume.
        isolate: whether kernels run in a worker process.
        launch_timeout_s: the longest time of a launch in the worker; None for no limit.
        device_memory_bytes: budget on a discrete device; None for most of its memory.
    """

    memory_bytes: int
    device: tuple[str, ...] = ("auto",)
    precision: Precision = "exact"
    by_hand: bool = False
    resumable: bool = False
    isolate: bool = False
    launch_timeout_s: float | None = None
    device_memory_bytes: int | None = None


def parse_bytes(value: Size, option: str = "memory") -> int:
    """Convert `"24MiB"`, `"1.5 GB"` or a whole number to a number of bytes.

    Raises:
        PlanError: if it is neither, or not positive.
    """
    size_bytes = _whole(value)
    if size_bytes is None:
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
        if match is None or match[2].lower() not in _UNITS:
            raise PlanError(
                f"cannot read {option}= as a size",
                element=option,
                expected='bytes as a whole number, or text like "24MiB", "24MB", "0.5GiB" or "100"',
                got=short_repr(value),
                hint=_suggestion(value, match, option),
            )
        size_bytes = int(min(float(match[1]) * _UNITS[match[2].lower()], float(_MOST_BYTES)))
    if size_bytes < 1:
        hint = f"leave {option}= out for the default"
        raise PlanError(f"cannot use {option}= that is not positive", element=option, got=short_repr(value), hint=hint)
    if size_bytes >= _MOST_BYTES:
        raise PlanError(
            f"cannot use {option}= that no machine has",
            element=option,
            expected="fewer than 2**63 bytes",
            got=short_repr(value),
        )
    return size_bytes


def _whole(value: object) -> int | None:
    """Convert a whole number of Python or NumPy, also as a float, to an int; None if it is not one."""
    if isinstance(value, float | np.floating):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def _suggestion(value: object, match: re.Match[str] | None, option: str) -> str | None:
    """Suggest what to write instead of an invalid size."""
    if match is not None and match[2][:1].lower() in tuple("kmgt"):
        number, letter = match[1], match[2][0].upper()
        return f'{option}="{number}{letter}iB" counts by 1024, {option}="{number}{letter}B" by 1000'
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            if (whole := _whole(float(value))) is not None and whole > 0:
                return f"{option}={whole}"
    return None
