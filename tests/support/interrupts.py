"""An interrupt between two lines of this package."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any, Self

import flowcompute


class Interrupt:
    """A KeyboardInterrupt of the thread that enters it, before a line of the package that it comes to.

    Args:
        line: its number among those that come, from 0, in code that is entered from then on; None for none.

    Attributes:
        lines: that came.
        place: file and number of the line; None until then.
    """

    def __init__(self, line: int | None = None) -> None:
        self.lines = 0
        self.place: tuple[str, int] | None = None
        self._line = line
        (self._root,) = flowcompute.__path__
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._entered)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._before)

    def _entered(self, frame: FrameType, event: str, value: object) -> Any:
        return self._reached if frame.f_code.co_filename.startswith(self._root) else None

    def _reached(self, frame: FrameType, event: str, value: object) -> Any:
        if event == "line" and self.place is None:
            self.lines += 1
            if self.lines - 1 == self._line:
                self.place = frame.f_code.co_filename, frame.f_lineno
                raise KeyboardInterrupt
        return self._reached
