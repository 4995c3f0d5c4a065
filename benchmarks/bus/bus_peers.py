"""The same jobs as others write them: PyTorch naively and carefully, CuPy, Dask with CuPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

CHUNK_BYTES = 64 << 20


def chunks(data: np.ndarray) -> Iterator[slice]:
    """Parts of the data that fit the device several times."""
    items = CHUNK_BYTES // data.itemsize
    for start in range(0, len(data), items):
        yield slice(start, min(start + items, len(data)))


def peers(data: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """W1 from memory to memory, by whoever is installed."""
    return torch_loops(data) | cupy_loop(data)


def torch_loops(data: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """What a PyTorch user writes first, and what one writes who knows the machine."""
    try:
        import torch  # noqa: PLC0415 - a peer that need not be there
    except ImportError:
        return {}

    def compute(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(2 * x + 1) * torch.tanh(x) + x * x

    def naive() -> np.ndarray:
        return np.concatenate([compute(torch.from_numpy(data[part]).cuda()).cpu().numpy() for part in chunks(data)])

    items = CHUNK_BYTES // data.itemsize
    pinned = [(torch.empty(items, pin_memory=True), torch.empty(items, pin_memory=True)) for _ in range(3)]
    streams = [torch.cuda.Stream() for _ in range(3)]

    def careful() -> np.ndarray:
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


def cupy_loop(data: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """What a CuPy user writes."""
    try:
        import cupy  # noqa: PLC0415 - as above
    except ImportError:
        return {}

    @cupy.fuse()  # type: ignore[untyped-decorator]
    def compute(x: cupy.ndarray) -> cupy.ndarray:
        return 1 / (1 + cupy.exp(-2 * x - 1)) * cupy.tanh(x) + x * x

    def loop() -> np.ndarray:
        return np.concatenate([cupy.asnumpy(compute(cupy.asarray(data[part]))) for part in chunks(data)])

    return {"CuPy": loop} | dask_graph(data, compute)


def dask_graph(data: np.ndarray, compute: Callable[[Any], Any]) -> dict[str, Callable[[], np.ndarray]]:
    """What a user of Dask writes whose chunks go through CuPy, in threads."""
    try:
        import cupy  # noqa: PLC0415 - as above
        import dask.array as da  # noqa: PLC0415
    except ImportError:
        return {}

    def there_and_back(part: np.ndarray) -> np.ndarray:
        made: np.ndarray = cupy.asnumpy(compute(cupy.asarray(part)))
        return made

    chunked = da.from_array(data, chunks=CHUNK_BYTES // data.itemsize)
    graph = chunked.map_blocks(there_and_back, dtype=data.dtype, meta=data[:0])
    return {"Dask with CuPy": lambda: graph.compute(scheduler="threads")}
