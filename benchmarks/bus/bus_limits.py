"""Limits of the machine: each wire alone, without the framework around it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.device import Device

BLOCK_BYTES = 16 << 20
BLOCKS = 64
THREADS = 12


def limits(device: Device, path: Path, out: Path) -> dict[str, tuple[int, Callable[[], object]]]:
    """By name the bytes that are moved and what moves them."""
    found = bus_limits(device) if not device.capabilities.host_memory else {}
    size = path.stat().st_size
    into = np.empty(BLOCK_BYTES * THREADS, np.uint8)
    into[:] = 0
    found[f"limit: file to memory, {THREADS} threads"] = (size, lambda: read_all(path, into))
    data = np.ones(size, np.uint8)
    found[f"limit: memory to memory, {THREADS} threads"] = (size, lambda: copy_all(data, into))
    found["limit: memory to file"] = (size, lambda: write_all(out, into, size))
    return found


def bus_limits(device: Device) -> dict[str, tuple[int, Callable[[], object]]]:
    """Uploads, downloads and both at a time, between pinned memory and the device."""
    there = [cl.Buffer(device.context, cl.mem_flags.READ_WRITE, BLOCK_BYTES) for _ in range(2)]
    here = [device.pinned.take(BLOCK_BYTES) for _ in range(2)]
    for block in here:
        block[:] = 1

    def up() -> None:
        # One is read while the next one waits: with more in NVIDIA's queues both directions take turns.
        before = None
        for _ in range(BLOCKS):
            event = cl.enqueue_copy(device.upload_queue, there[0], here[0], is_blocking=False)
            device.upload_queue.flush()
            if before is not None:
                before.wait()
            before = event
        device.upload_queue.finish()

    def down() -> None:
        for _ in range(BLOCKS):
            cl.enqueue_copy(device.download_queue, here[1], there[1], is_blocking=True)

    def both() -> None:
        other = threading.Thread(target=up)
        other.start()
        down()
        other.join()

    moved = BLOCKS * BLOCK_BYTES
    return {
        "limit: pinned memory to device": (moved, up),
        "limit: device to pinned memory": (moved, down),
        "limit: both at a time, each way": (moved, both),
    }


def read_all(path: Path, into: np.ndarray) -> None:
    """Read a file by several threads, each into a block of its own again and again."""
    handle = os.open(path, os.O_RDONLY)
    size = path.stat().st_size

    def read(start: int) -> None:
        block = memoryview(into[(start // BLOCK_BYTES % THREADS) * BLOCK_BYTES :][:BLOCK_BYTES])
        done = 0
        while done < min(BLOCK_BYTES, size - start):
            done += os.preadv(handle, [block[done : size - start]], start + done)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(read, range(0, size, BLOCK_BYTES)))
    os.close(handle)


def copy_all(data: np.ndarray, into: np.ndarray) -> None:
    """Copy an array by several threads, each into a block of its own again and again."""

    def copy(start: int) -> None:
        part = data[start : start + BLOCK_BYTES]
        np.copyto(into[(start // BLOCK_BYTES % THREADS) * BLOCK_BYTES :][: len(part)], part)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(copy, range(0, len(data), BLOCK_BYTES)))


def write_all(path: Path, block: np.ndarray, size: int) -> None:
    """Write a new file of so many bytes."""
    with path.open("wb") as file:
        for start in range(0, size, BLOCK_BYTES):
            file.write(block[: min(BLOCK_BYTES, size - start)])
    path.unlink()
