"""Peer: the C program of native.c, compiled when first needed."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable

import numpy as np

from benchmarks.measuring.chunks import NpyFile, aligned, column_moments, tiny_batches
from benchmarks.measuring.workloads import COLUMNS, ROW, WEIGHT_COLUMNS, Job

PANEL = 16
MEMCPY_BYTES = 256 << 20
LEAVE_BYTES = 16 << 20
"""Bytes of input after which the output is told to leave the cache; flowcompute's windows have as many."""


def load_native() -> ctypes.CDLL:
    """Compile native.c for this machine (kept by its contents) and load it."""
    source = os.path.join(os.path.dirname(__file__), "native.c")
    flags = ["-O3", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
    if platform.machine() in ("x86_64", "AMD64"):
        flags += ["-mavx2", "-mfma"]
    with open(source, "rb") as file:
        key = hashlib.sha256(file.read() + " ".join(flags).encode()).hexdigest()[:16]
    folder = os.path.join(tempfile.gettempdir(), f"flowcompute-benchmarks-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    library = os.path.join(folder, f"native-{key}.so")
    if not os.path.exists(library):
        draft = f"{library}.{os.getpid()}"
        subprocess.run(["gcc", *flags, source, "-o", draft, "-lm"], check=True)
        os.replace(draft, library)
    native = ctypes.CDLL(library)
    native.dot_files.restype = ctypes.c_double
    return native


def prepare(job: Job) -> Callable[[Job], object]:
    """Overwrites its output in place."""
    native = load_native()
    runs = {"W2": _dot, "W5": _columns, "W6": _tiny, "read": _read}
    if job.workload == "memcpy":
        return _prepare_memcpy(native)
    if job.workload in runs:
        run = runs[job.workload]
        return lambda job: run(native, job)
    weight_tiles = aligned(ROW * WEIGHT_COLUMNS)
    weight_tiles[:] = np.load(job.weight).reshape(ROW, -1, PANEL).transpose(1, 0, 2).reshape(-1)
    return lambda job: _map(native, job, weight_tiles, NpyFile(job.output, os.O_RDWR))


def prepare_commit(job: Job) -> Callable[[Job], object] | None:
    """Keeps the promise that `fc.save` keeps: a new file, made durable, then renamed."""
    return _prepare_new(job, durable=True)


def prepare_leave(job: Job) -> Callable[[Job], object] | None:
    """Makes a new file whose pages leave the system's cache as they are written, as in a job with a small `memory=`."""
    return _prepare_new(job, window=LEAVE_BYTES)


def _prepare_new(job: Job, durable: bool = False, window: int = 0) -> Callable[[Job], object] | None:
    if job.output_shape is None:
        return None
    native = load_native()
    weight_tiles = aligned(ROW * WEIGHT_COLUMNS)
    weight_tiles[:] = np.load(job.weight).reshape(ROW, -1, PANEL).transpose(1, 0, 2).reshape(-1)

    def run(job: Job) -> None:
        draft = job.output + ".partial"
        header = np.lib.format.open_memmap(draft, "w+", np.float32, job.output_shape)
        del header
        out = NpyFile(draft, os.O_RDWR)
        handle = os.dup(out.handle)
        _map(native, job, weight_tiles, out, window)
        if durable:
            os.fsync(handle)
        os.close(handle)
        os.replace(draft, job.output)

    return run


def address_of(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _map(native: ctypes.CDLL, job: Job, weight_tiles: np.ndarray, out: NpyFile, window: int = 0) -> None:
    """Compute all of a file, or `window` bytes of input at a time, whose output is told to leave the cache."""
    file = NpyFile(job.inputs[0])
    ratio = out.bytes / file.bytes
    for begin in range(0, file.bytes, window or file.bytes):
        size = min(window or file.bytes, file.bytes - begin)
        written = int(begin * ratio)
        offsets = (ctypes.c_long(file.offset + begin), ctypes.c_long(out.offset + written))
        ends = (file.handle, offsets[0], out.handle, offsets[1], ctypes.c_long(size))
        if job.workload == "W4":
            native.normalise_matmul(*ends, address_of(weight_tiles))
        else:
            native.map_file(*ends, {"copy": 0, "W1": 1, "W3": 3}[job.workload])
        if window:
            os.posix_fadvise(out.handle, 0, out.offset + written + int(size * ratio), os.POSIX_FADV_DONTNEED)
    file.close()
    out.close()


def _dot(native: ctypes.CDLL, job: Job) -> float:
    first, second = (NpyFile(path) for path in job.inputs)
    starts = (first.handle, ctypes.c_long(first.offset), second.handle, ctypes.c_long(second.offset))
    value = native.dot_files(*starts, ctypes.c_long(first.bytes))
    first.close()
    second.close()
    return value


def _columns(native: ctypes.CDLL, job: Job) -> tuple[np.ndarray, np.ndarray]:
    file = NpyFile(job.inputs[0])
    sums, squares = np.zeros(COLUMNS), np.zeros(COLUMNS)
    size = ctypes.c_long(file.bytes)
    native.column_sums(file.handle, None, ctypes.c_long(file.offset), size, address_of(sums), address_of(squares))
    file.close()
    return column_moments(file.shape[0], iter([(sums, squares)]), COLUMNS)


def _tiny(native: ctypes.CDLL, job: Job) -> np.ndarray:
    data = tiny_batches(job)
    result = np.empty_like(data)
    native.tiny_batches(address_of(data), address_of(result), ctypes.c_long(len(data)))
    return result


def _read(native: ctypes.CDLL, job: Job) -> None:
    file = NpyFile(job.inputs[0])
    native.read_file(file.handle, ctypes.c_long(file.offset), ctypes.c_long(file.bytes))
    file.close()


def _prepare_memcpy(native: ctypes.CDLL) -> Callable[[Job], object]:
    # Larger than any cache, and touched beforehand: the first touch of a page costs more than copying it.
    source, target = np.ones(MEMCPY_BYTES, np.uint8), np.ones(MEMCPY_BYTES, np.uint8)

    def run(job: Job) -> None:
        for start in range(0, job.moved_bytes // 2, MEMCPY_BYTES):
            count = min(MEMCPY_BYTES, job.moved_bytes // 2 - start)
            native.copy_memory(address_of(source), address_of(target), ctypes.c_long(count))

    return run
