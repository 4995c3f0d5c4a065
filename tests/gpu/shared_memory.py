"""Local memory of an emulated work-group that notices when teams do not meet between what they write and read."""

from __future__ import annotations

import numpy as np

SUBGROUP = 32
NOBODY, SEVERAL = -1, -2


class SharedMemory:
    """One local array, in pieces of two bytes, with who wrote and read each of them since the last barrier.

    Work-items of one team are taken to run in step, as those of a warp do where they exchange fragments.
    """

    def __init__(self, size_bytes: int) -> None:
        self.bytes = np.full(size_bytes, 0xFF, np.uint8)
        self._writer = np.full(size_bytes // 2, NOBODY)
        self._reader = np.full(size_bytes // 2, NOBODY)

    def meet(self) -> None:
        """All teams have met."""
        self._writer[...] = NOBODY
        self._reader[...] = NOBODY

    def wrote(self, places: np.ndarray, size: int, lid: np.ndarray) -> None:
        """Work-items write `size` bytes each, from these bytes on."""
        pieces, subgroups = _pieces(places, size, lid)
        others = [(marks[pieces] != NOBODY) & (marks[pieces] != subgroups) for marks in (self._writer, self._reader)]
        assert not np.any(others), "no barrier since another team wrote or read this"
        self._writer[pieces] = subgroups

    def read(self, places: np.ndarray, size: int, lid: np.ndarray) -> None:
        """Work-items read `size` bytes each, from these bytes on."""
        pieces, subgroups = _pieces(places, size, lid)
        writer = self._writer[pieces]
        assert not ((writer != NOBODY) & (writer != subgroups)).any(), "no barrier since another team wrote this"
        marks = self._reader[pieces]
        mine = np.where((marks == NOBODY) | (marks == subgroups), subgroups, SEVERAL)
        self._reader[pieces] = mine
        # Of teams that read a piece at once the last one's mark is there, and another's is not.
        self._reader[pieces[self._reader[pieces] != mine]] = SEVERAL


def _pieces(places: np.ndarray, size: int, lid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    count = max(1, size // 2)
    pieces = (places.reshape(-1, 1) // 2 + np.arange(count)).ravel()
    return pieces, np.repeat(lid.ravel() // SUBGROUP, count)
