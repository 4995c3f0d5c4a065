"""Products of matrices whose bits do not depend on threads: panels by shapes alone, each by one thread of BLAS.

The last bits of a product depend on how many threads of NumPy's BLAS share it. Idle threads of OpenBLAS also wait
busily, on cores that kernels need.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.imports import LateModule
from flowcompute.thread_pool import ThreadPool, own_cores

if TYPE_CHECKING:
    import threadpoolctl
else:
    threadpoolctl = LateModule("threadpoolctl")

_PANEL_COLUMNS = 64
"""Fewest columns of a factor that a thread multiplies at once."""

_MOST_PANELS = 16

_SHARED = 1 << 26
"""Products of two numbers from which panels and blocks are shared out among threads: some milliseconds of one."""

_MUTEX = threading.Lock()


_INSIDE = threading.local()


@cache
def _controller() -> Any:
    # Made when it is needed: finding the libraries of a process takes a millisecond, and NumPy is loaded by now.
    return threadpoolctl.ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let products of NumPy take one thread each. The block's end restores the number that there was.

    OpenBLAS has one number for the process, so one block is entered at a time. A thread of the user's that holds a
    limit of its own by threadpoolctl keeps it. Blocks inside of another one of the same thread do nothing: setting the
    number takes 50 us, as long as a small product. Products of a block share threads, which end with it.
    """
    if getattr(_INSIDE, "threads", None) is not None:
        yield
        return
    threads = ThreadPool("flowcompute-product")
    with _MUTEX, one_blas_thread_here():
        _INSIDE.threads = threads
        try:
            yield
        finally:
            _INSIDE.threads = None
            threads.close()


def one_blas_thread_here() -> AbstractContextManager[Any]:
    """Do as `one_blas_thread` in a thread that works for such a block: MKL has one number for each thread."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


def multiply_blocks(left: np.ndarray, right: np.ndarray, made: np.ndarray) -> None:
    """Multiply blocks of records. Large ones are shared out among threads, block by block and panel by panel.

    Args:
        left, right: matrices `(blocks, records, numbers)`; the same memory for a matrix times itself.
        made: takes `left.T @ right` of each block.
    """
    calls = [call for out, a, b in zip(made, left, right, strict=True) for call in _calls(a, b, out)]
    with one_blas_thread():
        if len(calls) == 1 or made.size * left.shape[1] < _SHARED:
            for call in calls:
                call()
            return
        waiting, others = deque(calls), min(len(calls), len(own_cores())) - 1
        working = _INSIDE.threads.begin([partial(_in_thread, waiting)] * others, others)
        try:
            _make(waiting)
        except BaseException:
            working.forget()
            raise
        working.wait()


def _calls(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> list[Callable[[], None]]:
    """Return what puts `a.T @ b` into `out`. Panels are a function of the shapes, so threads change no bit."""
    is_square, mine, others = np.may_share_memory(a, b), a.shape[1], b.shape[1]
    wide = max(mine, others)
    if mine * others * len(a) < _SHARED or wide < 2 * _PANEL_COLUMNS:
        return [partial(_whole, a, b, out)]
    count = min(_MOST_PANELS, wide // _PANEL_COLUMNS)
    edges = [wide * panel // count for panel in range(count + 1)]
    parts = [slice(*pair) for pair in pairwise(edges)]
    one = _lower if is_square else _left if mine == wide else _right
    # The last panels of a triangle are the longest.
    return [partial(one, a, b, out, part) for part in reversed(parts)]


def _in_thread(waiting: deque[Callable[[], None]]) -> None:
    # Once for all panels of the thread: setting the number takes as long as a panel.
    with one_blas_thread_here():
        _make(waiting)


def _make(waiting: deque[Callable[[], None]]) -> None:
    """Make calls until none is left that no thread has taken."""
    while True:
        try:
            call = waiting.popleft()
        except IndexError:
            return
        call()


def _whole(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    if out.dtype == a.dtype:
        np.matmul(a.T, b, out=out)
    else:
        out[...] = a.T @ b


def _left(a: np.ndarray, b: np.ndarray, out: np.ndarray, part: slice) -> None:
    out[part] = a[:, part].T @ b


def _right(a: np.ndarray, b: np.ndarray, out: np.ndarray, part: slice) -> None:
    out[:, part] = a.T @ b[:, part]


def _lower(a: np.ndarray, b: np.ndarray, out: np.ndarray, part: slice) -> None:
    """Multiply a matrix with itself: rows of the lower triangle, and what mirrors them."""
    del b
    out[part, : part.stop] = a[:, part].T @ a[:, : part.stop]
    out[: part.start, part] = out[part, : part.start].T
