"""The slope of a logistic regression over a whole file, in one reading.

Peers are torch, which maps the file and adds up the slopes of its parts, and a fold that only reads: the sum of each
column.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import flowcompute as fc
from benchmarks.training.timing import measured

COLUMNS = 64
"""Numbers of a record; the last one is the label."""

_PART_RECORDS = 1 << 14


def _slope(path: Path, weights: np.ndarray, device: str) -> np.ndarray:
    data = fc.open(path)
    w = fc.parameter(weights, name="w")
    z = data[:, :-1] @ w
    loss = (fc.logaddexp(0.0, z) - data[:, -1] * z).mean()
    return np.asarray(fc.grad(loss, w).resolve(device=device, progress=False))


def _by_torch(path: Path, weights: np.ndarray) -> np.ndarray:
    import torch  # noqa: PLC0415 - a peer that may be missing

    data = np.load(path, mmap_mode="c")
    w = torch.tensor(weights, requires_grad=True)
    for begin in range(0, len(data), _PART_RECORDS):
        part = torch.from_numpy(data[begin : begin + _PART_RECORDS])
        z = part[:, :-1] @ w
        torch.nn.functional.binary_cross_entropy_with_logits(z, part[:, -1], reduction="sum").backward()
    assert w.grad is not None
    return w.grad.numpy() / len(data)


def gradient_rows(mib: int, device: str, reps: int, *, torch: bool) -> None:
    """Print gigabytes of a file a second.

    Args:
        mib: size of the file.
        device: of flowcompute.
        reps: repetitions that count.
        torch: whether it is installed.
    """
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        records = (mib << 20) // (4 * COLUMNS)
        data = np.lib.format.open_memmap(path, "w+", np.float32, (records, COLUMNS))
        for begin in range(0, records, _PART_RECORDS):
            part = data[begin : begin + _PART_RECORDS]
            part[:] = rng.standard_normal(part.shape, dtype=np.float32)
            part[:, -1] = part[:, 0] > 0
        data.flush()
        weights = (rng.standard_normal(COLUMNS - 1) * 0.1).astype(np.float32)
        peers: dict[str, Callable[[], np.ndarray]] = {
            "fc.grad": lambda: _slope(path, weights, device),
            "sum of columns": lambda: np.asarray(fc.open(path).sum(axis=0).resolve(device=device, progress=False)),
        }
        if torch:
            peers["torch in parts"] = lambda: _by_torch(path, weights)
        seconds, given = measured(peers, reps)
        if torch:
            largest = np.abs(given["torch in parts"]).max()
            np.testing.assert_allclose(given["fc.grad"], given["torch in parts"], rtol=0, atol=1e-5 * largest)
    print(f"gradient: one reading of {mib} MiB, {records} records of {COLUMNS} numbers")
    print(f"{'':16}{'GB/s':>8}{'spread':>14}{'GB a CPU s':>12}")
    size = mib * 2**20 / 1e9
    for name, one in seconds.items():
        wall, busy = one.median
        spread = f"{size / max(one.wall):.2f} to {size / min(one.wall):.2f}"
        print(f"{name:16}{size / wall:8.2f}{spread:>14}{size / busy:12.2f}")
