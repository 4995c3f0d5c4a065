"""`python -m benchmarks.bus`: streams through a discrete GPU, beside what its wires can do and what others reach."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.bus.bus_limits import limits
from benchmarks.bus.bus_peers import peers
from benchmarks.measuring.interleaved import interleaved
from benchmarks.measuring.report import say
from flowcompute.gpu.device.discovery import select_device

Jobs = dict[str, tuple[int, Callable[[], Any]]]
"""By name the bytes that go to the device, and what brings them there."""

PARTS = ("streams", "products", "layers", "weights", "small", "peers", "limits")
"""Of the table: what is run in turns."""

SMALL = "memory to nowhere, batches of 1 MiB"

WIDTH, BATCH = 8192, 64
"""Of the network whose weights pass through the device: numbers of a record, records a batch."""


def chain(x: fc.Element) -> fc.Element:
    """W1."""
    return fc.nn.sigmoid(2 * x + 1) * fc.tanh(x) + x * x


class Ours:
    """The jobs as users write them."""

    def __init__(self, device: str | list[str], batch_bytes: int | None) -> None:
        self.options: dict[str, Any] = {"device": device, "progress": False, "memory": "32GiB"}
        if batch_bytes is not None:
            self.options["strategy"] = fc.Strategy(batch_bytes=batch_bytes)

    def streams(self, data: np.ndarray, path: Path, out: Path) -> Jobs:
        """W1 from and to memory and files, and a fold of a file."""
        x, y, pinned = fc.source(data), fc.open(path), fc.pinned(data.copy())
        there_and_back = chain(fc.source(pinned)) >> fc.to_array(out=fc.pinned(np.empty_like(data)))
        return {
            "memory to memory": (data.nbytes, lambda: chain(x).resolve(**self.options)),
            "memory to memory, both pinned": (data.nbytes, lambda: there_and_back.resolve(**self.options)),
            "memory to nowhere": (data.nbytes, lambda: (chain(x) >> fc.discard()).resolve(**self.options)),
            "file to a sum": (data.nbytes, lambda: chain(y).sum().resolve(**self.options)),
            "file to file": (data.nbytes, lambda: (chain(y) >> fc.save(out)).resolve(**self.options)),
        }

    def products(self, gib: float) -> Jobs:
        """A long half matrix times a resident one: its transfers take longer than the device needs."""
        w = np.ones((4096, 4096), np.float16)
        jobs: Jobs = {}
        for kind in ("", ", pinned"):
            x = np.ones((int(gib * (1 << 30)) // (2 * 4096), 4096), np.float16)
            product = fc.source(fc.pinned(x) if kind else x) @ w
            for end, name in ((product >> fc.discard(), "nowhere"), (product.max(), "a maximum")):
                jobs[f"half matrix times 4096 x 4096{kind} to {name}"] = (
                    x.nbytes,
                    partial(end.resolve, **self.options),
                )
        return jobs

    def layers(self, gib: float) -> Jobs:
        """Work for the device rather than for the bus: eight layers, of which one number comes back."""
        x = np.random.default_rng(1).random((int(gib * (1 << 28)) // 4096, 4096), dtype=np.float32)
        w = fc.constant(np.random.default_rng(2).standard_normal((4096, 4096), dtype=np.float32) / 64)
        y: fc.Element = fc.source(x)
        for _ in range(8):
            y = fc.tanh(y @ w)
        return {"eight layers of 4096 to a sum": (x.nbytes, lambda: y.sum().resolve(**self.options))}

    def weights(self, gib: float, device_memory: str) -> Jobs:
        """A network whose weights do not fit the device's budget together: they cross the bus with each batch.

        The bytes are those of the weights for each batch, whose records hardly count.
        """
        count = int(gib * (1 << 30)) // (2 * WIDTH * WIDTH)
        layers = [fc.pinned(np.full((WIDTH, WIDTH), 1 / WIDTH, np.float16)) for _ in range(count)]
        # As often as it takes to be seconds: planning 256 layers and making kernels ready takes one and a half.
        batches = max(8, int(32 / gib))
        y: fc.Element = fc.source(np.ones((BATCH * batches, WIDTH), np.float16))
        for layer in layers:
            y = y @ layer
        strategy = fc.Strategy(batch_bytes=BATCH * WIDTH * 2, joined_batches=1)
        options = {**self.options, "memory": "64GiB", "device_memory": device_memory, "strategy": strategy}
        plan = fc.plan(y, **{k: v for k, v in options.items() if k != "progress"})
        batches = -(-(y.spec.length or 0) // plan.batch_items)
        size = batches * sum(layer.nbytes for layer in layers)
        return {
            f"weights of {gib:g} GiB through {device_memory}, {batches} times": (size, lambda: y.resolve(**options))
        }


def batch_cost(data: np.ndarray, device: str | list[str]) -> Jobs:
    """The same bytes in batches of 1 MiB: joined on their way, as they are by default, and one by one."""
    job = chain(fc.source(data)) >> fc.discard()
    jobs: Jobs = {}
    for name, joined in ((SMALL, None), (f"{SMALL}, one by one", 1)):
        strategy = fc.Strategy(batch_bytes=1 << 20, joined_batches=joined)
        jobs[name] = (data.nbytes, partial(job.resolve, device=device, progress=False, strategy=strategy))
    return jobs


def check(device: str | list[str], data: np.ndarray) -> None:
    """Whether the answers are right, before anything is timed."""
    part = data[: 1 << 20]
    wide = part.astype(np.float64)
    made = chain(fc.source(part)).resolve(device=device, progress=False)
    np.testing.assert_allclose(made, np.tanh(wide) / (1 + np.exp(-2 * wide - 1)) + wide * wide, rtol=1e-5, atol=1e-6)


def main() -> None:
    """Print GB/s of what goes to the device, each job in turns with the others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bus", description=__doc__)
    parser.add_argument("--device", action="append", help="given again, devices share the jobs (default: gpu)")
    parser.add_argument("--gib", type=float, default=4, help="size of the input, GiB")
    parser.add_argument("--reps", type=int, default=5, help="repetitions")
    parser.add_argument("--batch-mib", type=int, help="batches of ours, MiB")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="which jobs (default: all)")
    parser.add_argument("--rows-gib", type=float, help="size of the half matrix, GiB (default: as the input)")
    parser.add_argument("--layers-gib", type=float, help="input of the eight layers, GiB (default: an eighth)")
    parser.add_argument("--weights-gib", type=float, default=2, help="size of a network's weights, GiB")
    parser.add_argument("--device-memory", default="1GiB", help="what the network's weights pass through")
    parser.add_argument("--folder", default="/dev/shm", help="where the files lie")
    parser.add_argument("--only", nargs="+", default=[""], help="jobs whose name has one of these texts")
    options = parser.parse_args()
    names = options.device or ["gpu"]
    device = names[0] if len(names) == 1 else names
    parts = options.parts or PARTS
    data = np.random.default_rng(0).random(int(options.gib * (1 << 28)), dtype=np.float32)
    check(device, data)
    ours = Ours(device, options.batch_mib and options.batch_mib << 20)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, out = Path(folder, "x.npy"), Path(folder, "y.npy")
        np.save(path, data)
        makers: dict[str, Callable[[], Jobs]] = {
            "streams": lambda: ours.streams(data, path, out),
            "products": lambda: ours.products(options.rows_gib or options.gib),
            "layers": lambda: ours.layers(options.layers_gib or options.gib / 8),
            "weights": lambda: ours.weights(options.weights_gib, options.device_memory),
            "small": lambda: batch_cost(data, device),
            "peers": lambda: {name: (data.nbytes, call) for name, call in peers(data).items()},
            "limits": lambda: limits(select_device(names[0], needs_float64=False), path, out),
        }
        jobs = {
            name: job
            for part in parts
            for name, job in makers[part]().items()
            if any(text in name for text in options.only)
        }
        report(jobs, options.reps)


def report(jobs: Jobs, reps: int) -> None:
    """Time them in turns and print a table."""
    seconds = interleaved({name: call for name, (_, call) in jobs.items()}, reps, untimed=1)
    print("| job | GB/s to the device | spread |\n| --- | --- | --- |")
    for name, each in seconds.items():
        rates = [jobs[name][0] / one / 1e9 for one in each]
        print(f"| {name} | {statistics.median(rates):.3g} | {min(rates):.3g} to {max(rates):.3g} |", flush=True)
    whole = seconds.get("memory to nowhere")
    for name in (one for one in seconds if whole and one.startswith(SMALL)):
        cost = (statistics.median(seconds[name]) - statistics.median(whole or [])) / (jobs[name][0] >> 20)
        say(f"{name}: {cost * 1e6:.0f} microseconds a batch more than its share of large ones")


if __name__ == "__main__":
    main()
