"""One thread for NumPy's BLAS: the last bits of a product depend on how many threads share it.

Idle threads of OpenBLAS also wait busily, on cores that kernels need.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import threadpoolctl

_MUTEX = threading.Lock()


@cache
def _controller() -> Any:
    # Made when it is needed: finding the libraries of a process takes a millisecond, and NumPy is loaded by now.
    return threadpoolctl.ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let products of NumPy take one thread each. The block's end restores the number that there was.

    OpenBLAS has one number for the process, so one block is entered at a time. A thread of the user's that holds a
    limit of its own by threadpoolctl keeps it.
    """
    with _MUTEX, one_blas_thread_here():
        yield


def one_blas_thread_here() -> AbstractContextManager[Any]:
    """Do as `one_blas_thread` in a thread that works for such a block: MKL has one number for each thread."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit
