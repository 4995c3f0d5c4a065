"""Seconds of calls that take turns, so that noise hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


def interleaved(calls: Mapping[str, Callable[[], Any]], reps: int, untimed: int = 0) -> dict[str, list[float]]:
    """Seconds of each repetition of each call, after `untimed` ones of each that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in range(-untimed, reps):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if repetition >= 0:
                seconds[name].append(time.perf_counter() - began)
    return seconds
