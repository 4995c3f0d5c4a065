"""`python -m benchmarks.bus`: memory -> discrete GPU -> memory, beside PyTorch's naive and careful loops."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator

import numpy as np

import flowcompute as fc
from benchmarks.interleaved import interleaved
from benchmarks.report import say

CHUNK_BYTES = 64 << 20


def chain(x: fc.Element) -> fc.Element:
    """W1."""
    return fc.nn.sigmoid(2 * x + 1) * fc.tanh(x) + x * x


def ours(data: np.ndarray, batch_bytes: int) -> Callable[[], object]:
    """The job as a user writes it."""
    strategy = fc.Strategy(batch_bytes=batch_bytes)
    return lambda: chain(fc.source(data)).resolve(device="gpu", progress=False, strategy=strategy)


def chunks(data: np.ndarray) -> Iterator[slice]:
    """Parts of the data that fit the device several times."""
    items = CHUNK_BYTES // data.itemsize
    for start in range(0, len(data), items):
        yield slice(start, min(start + items, len(data)))


def torch_loops(data: np.ndarray) -> dict[str, Callable[[], object]]:
    """What a PyTorch user writes first, and what one writes who knows the machine."""
    import torch  # noqa: PLC0415 - a peer that need not be there

    def compute(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(2 * x + 1) * torch.tanh(x) + x * x

    def naive() -> object:
        return np.concatenate([compute(torch.from_numpy(data[part]).cuda()).cpu().numpy() for part in chunks(data)])

    items = CHUNK_BYTES // data.itemsize
    pinned = [(torch.empty(items, pin_memory=True), torch.empty(items, pin_memory=True)) for _ in range(3)]
    streams = [torch.cuda.Stream() for _ in range(3)]

    def careful() -> object:
        result = np.empty_like(data)
        waiting: list[slice | None] = [None] * 3
        for turn, part in enumerate([*chunks(data), None, None, None]):
            slot = turn % 3
            before = waiting[slot]
            if before is not None:
                streams[slot].synchronize()
                np.copyto(result[before], pinned[slot][1][: before.stop - before.start].numpy())
            waiting[slot] = part
            if part is None:
                continue
            size = part.stop - part.start
            np.copyto(pinned[slot][0][:size].numpy(), data[part])
            with torch.cuda.stream(streams[slot]):
                made = compute(pinned[slot][0][:size].cuda(non_blocking=True))
                pinned[slot][1][:size].copy_(made, non_blocking=True)
        return result

    return {"PyTorch, naive": naive, "PyTorch, pinned memory and three streams": careful}


def main() -> None:
    """Print GB/s read, with the results going out at the same time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bus", description=__doc__)
    parser.add_argument("--gib", type=float, default=4, help="size of the input, GiB")
    parser.add_argument("--reps", type=int, default=5, help="repetitions")
    parser.add_argument("--batch-mib", type=int, nargs="*", default=[16, 64, 256], help="batches of ours, MiB")
    options = parser.parse_args()
    data = np.random.default_rng(0).standard_normal(int(options.gib * (1 << 28)), dtype=np.float32)
    calls = {f"flowcompute, batches of {mib} MiB": ours(data, mib << 20) for mib in options.batch_mib}
    try:
        calls |= torch_loops(data)
    except ImportError:
        say("PyTorch is not here")
    part = data[: 1 << 20]
    made = np.asarray(ours(part, 1 << 20)())
    wide = part.astype(np.float64)
    np.testing.assert_allclose(made, np.tanh(wide) / (1 + np.exp(-2 * wide - 1)) + wide * wide, rtol=1e-5, atol=1e-6)
    seconds = interleaved(calls, options.reps, untimed=1)
    print("| program | GB/s in | spread |\n| --- | --- | --- |")
    for name, each in seconds.items():
        rates = [data.nbytes / one / 1e9 for one in each]
        print(f"| {name} | {statistics.median(rates):.3g} | {min(rates):.3g} to {max(rates):.3g} |", flush=True)


if __name__ == "__main__":
    main()
