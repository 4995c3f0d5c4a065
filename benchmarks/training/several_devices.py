"""Steps of trainings on one device and on several, in turns: seconds of a step, and whether all bits are equal.

Run: python -m benchmarks.training.several_devices gpu:0 gpu:1
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

import flowcompute as fc

JOBS = {
    "2 x 4096, 65,536 records": (4096, 2, 1 << 16, 9),
    "2 x 4096, 131,072 records": (4096, 2, 1 << 17, 6),
    "4 x 1024, 131,072 records": (1024, 4, 1 << 17, 9),
    "4 x 1024, 32,768 records": (1024, 4, 1 << 15, 12),
}
"""Width and number of layers, records of a step, and steps."""

WARM = 3
"""Steps that are not counted: the first ones compile, allocate and record."""


def records_of(width: int, count: int) -> np.ndarray:
    """Return records `(count, width)` in float32."""
    some = np.random.default_rng(5).standard_normal((min(count, 4096), width), dtype=np.float32)
    return np.ascontiguousarray(np.tile(some, (count // len(some), 1)))


def loss_of(parameters: Sequence[fc.Element], x: np.ndarray) -> Any:
    """Return a mean over records of layers of `relu(h @ w)`."""
    h = fc.source(x)
    for one in parameters:
        h = fc.nn.relu(h @ one)
    return fc.mean(fc.sum(h * h, axis=1))


def steps_s(devices: Sequence[str], width: int, layers: int, x: np.ndarray, steps: int) -> tuple[float, str]:
    """Return the median seconds of a step, and a digest of all parameters after the last one."""
    rng = np.random.default_rng(7)
    parameters = [
        fc.parameter(rng.standard_normal((width, width), dtype=np.float32) / np.float32(width) ** 0.5, name=f"w{i}")
        for i in range(layers)
    ]
    spent = []
    with fc.train.Trainer(parameters, fc.train.adam(1e-4), device=list(devices)) as trainer:
        for _ in range(steps):
            began = time.perf_counter()
            trainer.step(loss_of(parameters, x))
            spent.append(time.perf_counter() - began)
        digest = hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in trainer.values.values()))
    return median(spent[WARM:]), digest.hexdigest()[:12]


def main() -> None:
    """Measure all jobs on the first device and on all of them."""
    devices = sys.argv[1:]
    for name, (width, layers, count, steps) in JOBS.items():
        x = records_of(width, count)
        found: dict[int, list[tuple[float, str]]] = {1: [], len(devices): []}
        for _ in range(2):
            for number in sorted(found):
                found[number].append(steps_s(devices[:number], width, layers, x, steps))
        one, several = (min(seconds for seconds, _ in found[number]) for number in (1, len(devices)))
        digests = {digest for runs in found.values() for _, digest in runs}
        bits = "equal" if len(digests) == 1 else "DIFFERENT"
        print(
            f"{name}: one {one:.4f} s, {len(devices)} {several:.4f} s, {one / several:.2f} times, bits {bits}",
            flush=True,
        )


if __name__ == "__main__":
    main()
