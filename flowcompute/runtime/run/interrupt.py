"""Ctrl-C, SIGTERM and SIGHUP while the main thread has a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

Handler = Callable[[int, FrameType | None], object] | int | None

_FATAL = 128

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals besides SIGINT that ask a program to end; Windows has no SIGHUP."""


def farewell(signum: int) -> BaseException:
    """Return what ends a program that got this signal: KeyboardInterrupt, or the exit code that shells show."""
    return KeyboardInterrupt() if signum == signal.SIGINT else SystemExit(_FATAL + signum)


class Interrupts:
    """Handlers within `with`: the first Ctrl-C, SIGTERM or SIGHUP asks for a clean end, the second does not wait.

    Signals are taken over only in the main thread. SIGINT is taken over from a handler written in
    Python only, the others unless they are ignored. A process that ignores a signal (one that was begun by `nohup`)
    goes on ignoring it. The earlier handlers are restored.

    Args:
        ask: called at the first signal, in the middle of whatever the main thread does.
        finish: called after that with the signal's number; may wait for the end and raise.
        over: whether there is nothing left to end: the signal goes to whom it would have gone to.

    Attributes:
        received: the first signal, None before.
        left: whether the block was left, so that signals go to whom they would have gone to.
    """

    def __init__(
        self,
        ask: Callable[[], object],
        finish: Callable[[int], object] = lambda _: None,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.received: int | None = None
        self._ask = ask
        self._finish = finish
        self._over = over
        self.left = False
        self._earlier: dict[int, Handler] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, *_ENDING):
                earlier = signal.getsignal(signum)
                if callable(earlier) or (signum in _ENDING and earlier == signal.SIG_DFL):
                    self._earlier[signum] = earlier
                    signal.signal(signum, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self.left = True
        for signum in tuple(self._earlier):
            # Somebody may have taken over from us meanwhile, and would be cut off: who comes back to us goes on.
            if signal.getsignal(signum) == self._handle:
                earlier = self._earlier.pop(signum)
                signal.signal(signum, earlier)
                before = getattr(earlier, "__self__", None)
                if isinstance(before, Interrupts) and before.left:
                    before.__exit__()

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        if self.left or self._over():
            # Whoever took over from us and passes signals on deals with it already.
            if signal.getsignal(signum) == self._handle:
                self.__exit__()
                signal.raise_signal(signum)
            return
        if self.received is not None:
            raise farewell(signum)
        self.received = signum
        self._ask()
        self._finish(signum)
