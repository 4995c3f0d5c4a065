"""Config: what the user fixes for a run."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flowcompute.errors import PlanError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


Devices = str | Sequence[str]
"""What computes: see `device=` of `fc.plan`."""

Precision = Literal["exact", "fast", "tf32x3"]
"""How numbers are computed; see `fc.plan`."""

Mode = Literal["reset", "cumulative"]
"""What the folds of a flow answer for; see `fc.open_flow`."""


@dataclass(frozen=True)
class Config:
    """What the user fixes.

    Attributes:
        memory_bytes: budget on the host.
        device: those asked for, best first: "auto", "numpy", "cpu", "gpu:1", or part of a name.
        precision: "exact" (IEEE, the default), "fast" (multiply-add may be contracted), or "tf32x3".
        by_hand: whether records are sent by hand, in batches of any size.
        resumable: whether checkpoints are taken, so that every batch must end where any backend can go on.
        isolate: whether kernels run in a worker process.
        launch_timeout_s: how long a launch may take there; None for any time.
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


def parse_bytes(value: int | str, option: str = "memory") -> int:
    """`"24MiB"`, `"1.5 GB"` or a number of bytes, as bytes.

    Raises:
        PlanError: if it is neither, or not positive.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        number = float(value)
        size = 1
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
        if match is None or match[2].lower() not in _UNITS:
            raise PlanError(
                f"{option}= is no size", element=option, expected='bytes, or text like "24MiB"', got=repr(value)
            )
        number, size = float(match[1]), _UNITS[match[2].lower()]
    if number * size < 1:
        raise PlanError(f"{option}= must be positive", element=option, got=repr(value))
    return value if isinstance(value, int) else int(number * size)


def default_memory_bytes() -> int:
    """Half of the machine's memory, or of the control group's limit if that is smaller."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits) // 2
