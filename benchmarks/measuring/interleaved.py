"""Seconds of calls that take turns, so that noise hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


def interleaved(
    calls: Mapping[str, Callable[[], Any]], reps: int, untimed: int = 0, *, twice: bool = False
) -> dict[str, list[float]]:
    """Seconds of each repetition of each call, after `untimed` ones of each that do not count.

    With `twice` each is called once more before: a GPU takes about 0.2 ms to change from a program
    with CUDA to one with OpenCL, as long as the product of two matrices of 4096 x 4096; and threads of
    OpenMP wait busily for some milliseconds after a call, on cores that the next one needs.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in range(-untimed, reps):
        for name, call in calls.items():
            if twice:
                call()
            began = time.perf_counter()
            call()
            if repetition >= 0:
                seconds[name].append(time.perf_counter() - began)
    return seconds
