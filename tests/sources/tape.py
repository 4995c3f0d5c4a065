"""A source that keeps a log of what was read."""

from __future__ import annotations

import numpy as np

from flowcompute.elements.source import Reader, Source
from flowcompute.spec import Spec, Stream


class Tape(Source):
    """Records that are only read, never seen in place, and `log`: first and last record (exclusive) of each reading.

    `ends_at` is where it ends early.
    """

    def __init__(self, records: np.ndarray, ends_at: int | None = None) -> None:
        super().__init__(Spec(records.dtype, records.shape[1:], Stream(len(records))))
        self.freeze_fields(records=records[:ends_at], log=[])

    @property
    def read_records(self) -> int:
        """How many records were read, counting each as often as it was."""
        return sum(stop - start for start, stop in self.log)

    def open(self, *, position: int = 0, mapped: bool = True) -> Reader:
        """A reader that begins at record `position`."""
        del mapped
        return _TapeReader(self, position)


class _TapeReader(Reader):
    def __init__(self, tape: Tape, position: int) -> None:
        self.tape = tape
        self.position = position

    def read(self, out: np.ndarray) -> int:
        part = self.tape.records[self.position : self.position + len(out)]
        out[: len(part)] = part
        if len(part):
            self.tape.log.append((self.position, self.position + len(part)))
        self.position += len(part)
        return len(part)

    def close(self) -> None:
        """There is nothing to release."""
