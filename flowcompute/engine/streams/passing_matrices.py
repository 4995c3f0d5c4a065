"""Chosen matrices that pass: they are read past the system's cache, into memory that is used again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection

from flowcompute.files import OverlaidParts
from flowcompute.model_files import Weight, WeightFile
from flowcompute.thread_pool import PendingCalls, ThreadPool

_READERS = 3
"""Reads in progress at most. The first of three products that take two matrices each have theirs first."""


class PassingMatrices:
    """Matrices in memory that lies over the mapped file while kernels read them.

    Args:
        stored: matrices of all products that choose.
        room_bytes: for those that are in memory at a time.
    """

    def __init__(self, stored: Collection[Weight], room_bytes: int) -> None:
        self._overlaid: OverlaidParts | None = None
        if stored:
            # Systems without such memory read by their cache.
            with contextlib.suppress(OSError):
                largest = max(stored, key=lambda one: one.entry_bytes)
                self._overlaid = OverlaidParts(largest.file.files, largest.entry_bytes, room_bytes)
        self._threads = ThreadPool("flowcompute-matrix-reader")
        self._direct: dict[WeightFile, int] = {}
        self._added: list[Callable[[], None]] = []
        self._past = 0
        self._pending: dict[int, PendingCalls[None]] = {}

    @property
    def works(self) -> bool:
        """Flag that matrices can pass, as far as it is known."""
        return self._overlaid is not None and self._overlaid.works and all(one >= 0 for one in self._direct.values())

    def stop(self) -> None:
        """Give memory back, and let none pass any more. Calling it twice does nothing."""
        # An interrupt may have left reads in progress that nobody waits for: threads end after them.
        self._threads.close()
        self.wait()
        if self._overlaid is not None:
            self._overlaid.close()
        self._overlaid = None

    def begin_choice(self, count: int) -> None:
        """Begin a choice of some matrices. No kernel may still want those of the one before."""
        self.wait()
        # What an error has left is given back, and may not be read afterwards.
        self._added = []
        if self._overlaid is not None:
            self._past = self._overlaid.begun
            if self._overlaid.free < count:
                self._give_back()

    def add(self, stored: Weight, number: int) -> bool:
        """Take a matrix among those that `begin` reads; False where there is no room, or no way past the cache."""
        if self._overlaid is None:
            return False
        direct = self._direct.get(stored.file)
        if direct is None:
            direct = -1
            with contextlib.suppress(OSError):
                direct = stored.file.open_direct()
            self._direct[stored.file] = direct
        read = None if direct < 0 else stored.overlay(self._overlaid, direct, number)
        if read is not None:
            self._added.append(read)
        return read is not None

    def begin(self, stored: Weight) -> None:
        """Begin to read what was added of a product; then give back what was read for the choice before."""
        if self._added:
            # Whoever lost the reads before would use their memory again while they are in progress.
            self.wait(stored)
            self._pending[id(stored)] = self._threads.begin(self._added, _READERS)
            self._added = []
            # The disk works meanwhile.
            self._give_back()

    def _give_back(self) -> None:
        if self._overlaid is not None:
            self._overlaid.give_back(self._past)
        self._past = 0

    def wait(self, stored: Weight | None = None) -> None:
        """Wait until the matrices of a product are there, or all that were added.

        No byte depends on it: who comes too early reads the mapped file.
        """
        for key in [*self._pending] if stored is None else [id(stored)]:
            if (pending := self._pending.get(key)) is not None:
                pending.forget()
                del self._pending[key]

    def close(self) -> None:
        """Give all back. Calling it twice does nothing."""
        self.stop()
        for file, direct in self._direct.items():
            if direct >= 0:
                file.files.close(direct)
        self._direct = {}
