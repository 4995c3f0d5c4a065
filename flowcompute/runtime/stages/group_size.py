"""Number of batches that are handed to a thread together."""

from __future__ import annotations

LONGEST_S = 2e-3
"""Seconds that batches which are handed over together take, about: ten times what handing over takes."""


class GroupSize:
    """The number of batches of a stage that go to a thread in one hand-over, by what the last ones took.

    Args:
        most: what it never exceeds.
        longer: by what factor a group may take longer than `LONGEST_S`.

    Attributes:
        batches: the next group's, at most.
    """

    def __init__(self, most: int, longer: int = 1) -> None:
        self.batches = 1
        self._most, self._longer = most, longer

    def took(self, seconds: float, batches: int) -> None:
        """Note what a group took in its thread."""
        self.batches = max(1, min(self._most, int(self._longer * LONGEST_S * batches / max(seconds, 1e-9))))
