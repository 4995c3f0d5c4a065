"""When checkpoints are taken."""

from __future__ import annotations

import contextlib
import sys
import time

from flowcompute.errors import PlanError, short_repr
from flowcompute.imports import dataclass
from flowcompute.strategy import Every, parse_bytes

LEAST_AUTO_S = 10.0
"""Seconds between automatic checkpoints, at least."""

AUTO_FACTOR = 100.0
"""An automatic checkpoint is taken after so many times what the last one took, which is at most 1 % of the run."""


@dataclass
class CheckpointPolicy:
    """The distance of checkpoints: in seconds, in bytes read, or as far as keeps them below 1 % of the run.

    Attributes:
        every_s: seconds; None where they do not count.
        every_bytes: bytes read; None where they do not count.
    """

    every_s: float | None = None
    every_bytes: int | None = None
    _last_s: float = 0.0
    _last_bytes: int = 0
    _cost_s: float = 0.0

    @classmethod
    def parse(cls, every: Every) -> CheckpointPolicy:
        """Parse `checkpoint_every=`.

        Raises:
            PlanError: if it is neither "auto" nor seconds nor a size.
        """
        if isinstance(every, str) and every == "auto":
            return cls()
        if isinstance(every, int | float) and not isinstance(every, bool) and 0 <= every <= sys.float_info.max:
            return cls(every_s=float(every))
        if isinstance(every, str):
            with contextlib.suppress(PlanError):
                return cls(every_bytes=parse_bytes(every, "checkpoint_every"))
        raise PlanError(
            "cannot use this value",
            element="checkpoint_every",
            expected='"auto", seconds, or a size like "64MiB"',
            got=short_repr(every),
        )

    def begin(self, bytes_read: int, cost_s: float = 0.0) -> None:
        """Note that a checkpoint was taken now, with so many seconds of pause and of writing."""
        self._last_s, self._last_bytes = time.monotonic(), bytes_read
        self._cost_s = cost_s

    def is_over(self, bytes_read: int) -> bool:
        """Check whether it is time for the next one."""
        if self.every_bytes is not None:
            return bytes_read - self._last_bytes >= self.every_bytes
        every_s = self.every_s
        if every_s is None:
            every_s = max(LEAST_AUTO_S, AUTO_FACTOR * self._cost_s)
        return time.monotonic() - self._last_s >= every_s
