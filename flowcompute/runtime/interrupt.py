"""Ctrl-C while the main thread waits for a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

Handler = Callable[[int, FrameType | None], object]


class Interrupts:
    """Within `with`, the first Ctrl-C asks for a clean end, and the second raises KeyboardInterrupt at once.

    Signals are taken over only in the main thread, and only from a handler written in Python: a
    process that ignores them goes on ignoring them. The earlier handler is restored.

    Args:
        ask: called at the first Ctrl-C, in the middle of whatever the main thread does.

    Attributes:
        received: whether there was one.
    """

    def __init__(self, ask: Callable[[], None]) -> None:
        self.received = False
        self._ask = ask
        self._earlier: Handler | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            earlier = signal.getsignal(signal.SIGINT)
            if callable(earlier):
                self._earlier = earlier
                signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._earlier is not None:
            signal.signal(signal.SIGINT, self._earlier)

    def _handle(self, _signum: int, _frame: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = True
        self._ask()
