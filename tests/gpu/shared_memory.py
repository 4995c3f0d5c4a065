"""Local memory of an emulated work-group that notices when teams do not meet between what they write and read."""

from __future__ import annotations

import numpy as np

SUBGROUP, GROUP = 32, 128
_TEAMS, _GROUPS = (np.uint32(1) << (np.arange(1024) // one).astype(np.uint32) for one in (SUBGROUP, GROUP))
"""Bits of the team and of the group of each work-item of the largest work-group."""


class SharedMemory:
    """One local array, in pieces of two bytes, with who wrote and read each of them since they met.

    Work-items of one team are taken to run in step, as those of a warp do where they exchange fragments. Each team
    has a bit. Four teams are a group, which may meet without the others: then its bit is set in place of theirs.
    """

    def __init__(self, size_bytes: int) -> None:
        self.bytes = np.full(size_bytes, 0xFF, np.uint8)
        self._writers, self._readers = (np.zeros((2, size_bytes // 2), np.uint32) for _ in range(2))

    def meet(self) -> None:
        """All teams have met."""
        self._writers[...] = self._readers[...] = 0

    def meet_in_groups(self, lid: np.ndarray) -> None:
        """The teams of each group of these work-items have met, and no others."""
        for marks in (self._writers, self._readers):
            for group in set(lid // GROUP):
                teams = np.uint32(0xF << 4 * group)
                marks[1][(marks[0] & teams) != 0] |= np.uint32(1 << group)
                marks[0] &= ~teams

    def wrote(self, places: np.ndarray, size: int, lid: np.ndarray) -> None:
        """Work-items write `size` bytes each, from these bytes on."""
        pieces, teams, groups = _pieces(places, size, lid)
        others = [
            (marks[0][pieces] & ~teams) | (marks[1][pieces] & ~groups) for marks in (self._writers, self._readers)
        ]
        assert not np.any(others), "no barrier since another team wrote or read this"
        np.bitwise_or.at(self._writers[0], pieces, teams)

    def read(self, places: np.ndarray, size: int, lid: np.ndarray) -> None:
        """Work-items read `size` bytes each, from these bytes on."""
        pieces, teams, groups = _pieces(places, size, lid)
        others = (self._writers[0][pieces] & ~teams) | (self._writers[1][pieces] & ~groups)
        assert not others.any(), "no barrier since another team wrote this"
        np.bitwise_or.at(self._readers[0], pieces, teams)


def _pieces(places: np.ndarray, size: int, lid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pieces of each work-item, a row each, and the bits of its team and of its group."""
    pieces = places.reshape(-1, 1) // 2 + np.arange(max(1, size // 2))
    lid = lid.reshape(-1, 1)
    return pieces, _TEAMS[lid], _GROUPS[lid]
