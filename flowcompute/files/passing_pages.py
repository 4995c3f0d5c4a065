"""Pages of the system's cache that a job leaves behind: those of files larger than its memory go again.

Data that is larger than memory gains nothing from a cache that it flushes. The pages of such a file would push out what
other programs read again. Pages that were cached before the job came stay: somebody has use for them.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading

import numpy as np

from flowcompute.files.drafts import Draft, FolderDraft
from flowcompute.files.file_layer import Files, system_library

WINDOW_BYTES = 16 << 20
"""Bytes that are asked for and let go at a time."""

_WINDOWS_AHEAD = 3
"""Windows that are asked for before the reader is there, since the system reads ahead of it."""

_SAMPLE_BYTES = 1 << 20
"""Bytes of a window that are looked at in each of three places: to look at all costs 16 ms a GiB."""

_SAMPLES = 64
"""Places of a file at which is looked to estimate how much of it is cached."""

_FOLIO_BYTES = 2 << 20
"""Largest run of pages that the system keeps or lets go as a whole."""

_DIRTY_WINDOWS = 4
"""Windows behind a writer that the disk may still be writing."""


class PassedPages:
    """Pages behind a reader, which leave the system's cache unless they were there before it.

    The system tells what is cached to the owner of a file and to those who may write to it. For others all of it
    seems to be cached, and stays.

    Args:
        files: the file layer.
        handle: the open file.
        size: its bytes.
    """

    def __init__(self, files: Files, handle: int, size: int) -> None:
        self._files = files
        self._handle = handle
        self._size = size
        self._windows = -(-size // WINDOW_BYTES)
        self._brought: list[bool] = []
        self._gone = 0
        self._lock = threading.Lock()
        # Only asked about and never touched, so that a file that shrinks does no harm.
        self._mapping: mmap.mmap | None = None
        if size:
            # Where a file cannot be mapped, or was cut short, nobody says what is cached, and all stays.
            with contextlib.suppress(OSError, ValueError):
                self._mapping = files.map_read(handle, size)

    def ask(self, position: int) -> None:
        """Find out what is cached ahead of byte `position`, before it is read. Threads may ask at a time."""
        with self._lock:
            wanted = min(position // WINDOW_BYTES + _WINDOWS_AHEAD, self._windows)
            for window in range(len(self._brought), wanted):
                self._brought.append(not self._is_cached(window))

    def let_go(self, position: int) -> None:
        """Let what lies before byte `position` go, as far as the reader brought it."""
        with self._lock:
            until = min(max(position, 0) // WINDOW_BYTES, len(self._brought))
            for window in range(self._gone, until):
                self._drop(window)
            self._gone = max(self._gone, until)

    def close(self) -> None:
        """Let all go that the reader brought, what was read ahead of it too. Calling it twice does nothing."""
        with self._lock:
            mapping, self._mapping = self._mapping, None
            if mapping is None:
                return
            for window in range(self._gone, len(self._brought)):
                self._drop(window)
            mapping.close()

    def _is_cached(self, window: int) -> bool:
        mapping = self._mapping
        if mapping is None:
            return True
        begin = window * WINDOW_BYTES
        end = min(begin + WINDOW_BYTES, self._size)
        # Whoever composed the job has read the header, and with it what the system read ahead.
        starts = {*((begin,) if begin else ()), (begin + end) // 2, max((begin + end) // 2, end - _SAMPLE_BYTES)}
        return any(is_cached(mapping, start, min(start + _SAMPLE_BYTES, end)) for start in starts)

    def _drop(self, window: int) -> None:
        if not self._brought[window]:
            return
        begin, end = window * WINDOW_BYTES, min((window + 1) * WINDOW_BYTES, self._size)
        if window and self._brought[window - 1]:
            # A folio across the border went with neither of both.
            begin = max(0, begin - _FOLIO_BYTES)
        self._files.let_go(self._handle, begin, end)


class WrittenPages:
    """Pages behind a writer, which are sent to the disk and then leave the system's cache.

    Args:
        draft: what is written.
    """

    def __init__(self, draft: Draft | FolderDraft) -> None:
        self._draft = draft
        self._sent = 0

    def written(self, end: int) -> None:
        """Note that all before byte `end` was written: it is sent now, and let go once the disk has it."""
        if end - self._sent >= WINDOW_BYTES:
            # The system begins to write what is dirty, and lets go what it wrote after an earlier call.
            self._draft.let_go(max(0, self._sent - _DIRTY_WINDOWS * WINDOW_BYTES), end)
            self._sent = end


def cached_share(files: Files, path: str) -> float:
    """Estimate the share of a local file that is in the system's cache, from 0 to 1, by samples; 1 where nobody says.

    Raises:
        OSError: if the file cannot be opened.
    """
    handle = files.open_read(path)
    try:
        size = files.status(handle).st_size
        if not size:
            return 1.0
        mapping = files.map_read(handle, size)
        try:
            # In the middle of each part: the system has often read the beginning for somebody who looked at the header.
            places = [(2 * part + 1) * size // (2 * _SAMPLES) for part in range(_SAMPLES)]
            return sum(is_cached(mapping, place, place + 1) for place in places) / _SAMPLES
        finally:
            mapping.close()
    except ValueError:
        # The file was cut short before it was mapped.
        return 1.0
    finally:
        files.close(handle)


def is_cached(mapping: mmap.mmap, begin: int, end: int) -> bool:
    """Check whether a page between two bytes of a mapped file is in the system's cache; True where nobody says."""
    if not hasattr(os, "posix_fadvise"):
        return True
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    seen = np.zeros(-(-(end - first) // mmap.PAGESIZE), np.uint8)
    address = np.frombuffer(mapping, np.uint8).ctypes.data
    with contextlib.suppress(AttributeError):
        asked = system_library().mincore(
            ctypes.c_void_p(address + first), ctypes.c_size_t(end - first), ctypes.c_void_p(seen.ctypes.data)
        )
        if asked == 0:
            return bool((seen & 1).any())
    return True
