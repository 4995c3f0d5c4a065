"""Small jobs that tell whether an OpenCL runtime computes what it should, and how fast.

They are of the kinds at which runtimes have failed before; see docs/decisions/0013. The oracle is the NumPy backend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

import flowcompute as fc
from flowcompute.elements import Element
from flowcompute.errors import FlowError
from flowcompute.strategy import RuntimeTrial

_CHECKED_RECORDS, _TIMED_RECORDS = 1024, 16384
_ITEM = 1024
_REPETITIONS = 5

_TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}
"""Largest difference from NumPy's backend, relative to the largest number of a result."""

Make = Callable[[Mapping[str, Element]], Element]

TIMED: Mapping[str, Make] = {
    "map": lambda x: fc.nn.sigmoid(1.5 * x["f4"] - 0.25) * fc.tanh(x["f4"]) + x["f4"] * x["f4"],
    "softmax": lambda x: fc.nn.softmax(x["f4"], axis=1),
    "product": lambda x: x["f4"] @ np.linspace(-1, 1, _ITEM * 64, dtype="f4").reshape(_ITEM, 64),
    "variance": lambda x: x["f4"].var(axis=0),
}
"""Jobs whose time counts: what streams through a CPU most."""

CHECKED: Mapping[str, Make] = {
    **TIMED,
    "casts of integers": lambda x: (x["i8"] * 3 - 7).astype("float32").astype("int64"),
    "shifts": lambda x: (x["i8"] >> 3) ^ (x["i8"] << 2),
    "hypot in float64": lambda x: fc.hypot(x["f8"], x["f8"] + 1.0),
    "trigonometry": lambda x: fc.sin(x["f4"] * 100) + fc.cos(x["f4"]),
    "half formats": lambda x: (x["f4"].astype("float16") * 2).sum(axis=1, dtype="float32"),
    "running sum": lambda x: fc.cumulative_sum(x["i8"], axis=0),
    "selection": lambda x: x["f4"][x["f4"][:, 0] > 0].max(axis=0),
    "attention": lambda x: fc.nn.attention(*(fc.reshape(x["f4"], (-1, 4, 16, 16)),) * 3),
    "argmax": lambda x: fc.argmax(x["f4"], axis=1),
}
"""Jobs whose answers are compared."""


def try_device(device: str, jobs: Mapping[str, Make] = CHECKED, timed: Mapping[str, Make] = TIMED) -> RuntimeTrial:
    """Run the jobs on a device, and compare their answers with NumPy's backend.

    Args:
        device: as `device=` takes it.
        jobs: those whose answers are compared, by name.
        timed: those that are timed.
    """
    streams = _streams(_CHECKED_RECORDS)
    for name, make in jobs.items():
        try:
            got = np.asarray(make(streams).resolve(device=device, progress=False))
        except FlowError as error:
            return RuntimeTrial(f"{name}: {error.message}", 0.0)
        wanted = np.asarray(make(streams).resolve(device="numpy", progress=False))
        if not _agree(got, wanted):
            return RuntimeTrial(f"{name}: other numbers than NumPy's", 0.0)
    streams = _streams(_TIMED_RECORDS)
    return RuntimeTrial("", sum(_seconds(make(streams), device) for make in timed.values()))


def _streams(records: int) -> dict[str, Element]:
    rng = np.random.default_rng(7)
    numbers = rng.standard_normal((records, _ITEM))
    integers = rng.integers(-(1 << 40), 1 << 40, (records, 16))
    return {name: fc.source(array) for name, array in (("f4", numbers.astype("f4")), ("f8", numbers), ("i8", integers))}


def _agree(got: np.ndarray, wanted: np.ndarray) -> bool:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return False
    tolerance = _TOLERANCE.get(str(wanted.dtype))
    if tolerance is None:
        return bool(np.array_equal(got, wanted))
    largest = float(np.abs(wanted).max(initial=0.0))
    return bool(np.allclose(got, wanted, rtol=0.0, atol=tolerance * max(largest, 1.0)))


def _seconds(job: Element, device: str) -> float:
    """Return the fewest seconds of the processor that a job takes; others only make it slower."""
    found = []
    for _ in range(_REPETITIONS):
        began_s = time.process_time()
        (job >> fc.discard() if job.spec.is_stream else job).resolve(device=device, progress=False)
        found.append(time.process_time() - began_s)
    return min(found)
