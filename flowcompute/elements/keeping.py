"""The means of a writer that can be resumed: a name for its temporary file, and room in the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from flowcompute.imports import dataclass

State = dict[str, Any]
"""Plain data and arrays: what a checkpoint can hold."""

Promise = Literal["exactly once", "at least once"]
"""The number of times that a record's effect appears at a destination, however often the job was killed and resumed."""


class GrowingFile(Protocol):
    """A file of a checkpoint that only grows."""

    def write_at(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` (bytes) at `offset`."""

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` (bytes) from `offset`; returns how many bytes there were."""

    def fsync(self) -> None:
        """Make it durable."""

    def mark(self) -> Any:
        """Return a mark that a state holds in place of all the bytes that there are now."""

    def restore(self, mark: Any) -> None:
        """Go back to a mark: what came later is cut off. CheckpointError if what came before is not there."""


@dataclass(frozen=True)
class StagingArea:
    """The place where one destination of a job keeps what it writes.

    Attributes:
        token: tells the names of temporary files: the same for a job and the runs that resume it.
        side: opens the destination's file in the checkpoint, always the same one.
        epoch: how many checkpoints the job has passed.
    """

    token: str
    side: Callable[[], GrowingFile]
    epoch: Callable[[], int]
