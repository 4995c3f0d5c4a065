"""Measurement of the rates at which files are read and written below a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from flowcompute.errors import DestinationError
from flowcompute.files import FILES, Draft, Files, cached_share, explain, shown
from flowcompute.strategy import FileRates

MEASURED_BYTES = 256 << 20
"""Bytes of the file that is written and read."""

_PIECE_BYTES = 4 << 20


def measure_files(
    folder: str, *, size: int = MEASURED_BYTES, files: Files = FILES, clock: Callable[[], float] = time.perf_counter
) -> FileRates:
    """Measure how fast files below a folder are written and read, by a file there that is removed again.

    The system may keep the file in its cache although it was asked to let it go. Then both rates of reading are equal.

    Args:
        folder: where the file is written.
        size: its bytes.
        files: the file layer.
        clock: gives seconds.

    Raises:
        DestinationError: if no file can be written there.
    """
    # Random numbers: a disk that compresses, or a file without some of its blocks, would be too fast.
    piece = memoryview(np.random.default_rng(0).bytes(_PIECE_BYTES))
    try:
        draft = Draft(files, os.path.join(os.path.abspath(folder), "flowcompute-measured"))
        try:
            written_s = _seconds(clock, lambda: _write(draft, piece, size))
            assert draft.path is not None
            draft.let_go(0, size)
            cold = cached_share(files, draft.path) < 1
            read_s = _seconds(clock, lambda: _read(files, draft.path, size))
            cached_s = _seconds(clock, lambda: _read(files, draft.path, size))
        finally:
            draft.discard()
    except OSError as error:
        why, advice = explain(error)
        raise DestinationError(
            f"cannot measure files in {shown(folder)}: {why}",
            element="devices",
            expected=f"room for a file of {size:,} bytes",
            hint=advice,
        ) from error
    if not cold:
        read_s = cached_s = min(read_s, cached_s)
    return FileRates(size / read_s, size / cached_s, size / written_s)


def _seconds(clock: Callable[[], float], work: Callable[[], None]) -> float:
    began_s = clock()
    work()
    return max(clock() - began_s, 1e-9)


def _write(draft: Draft, piece: memoryview, size: int) -> None:
    for position in range(0, size, len(piece)):
        draft.write(piece[: size - position], position)
    draft.sync()


def _read(files: Files, path: str | None, size: int) -> None:
    assert path is not None
    buffer = memoryview(bytearray(_PIECE_BYTES))
    handle = files.open_read(path)
    try:
        for position in range(0, size, _PIECE_BYTES):
            files.read_into(handle, buffer, position)
    finally:
        files.close(handle)
