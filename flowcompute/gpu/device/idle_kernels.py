"""Kernels of a device that nobody uses now. Making one costs pyopencl a millisecond, also of a built program."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flowcompute.gpu.device._cl import cl

_MOST_KERNELS = 256
_generating = threading.Lock()
"""Held while pyopencl writes Python for a kernel: two threads may find the same name for their texts, and it warns."""


class TakenKernel(NamedTuple):
    """A kernel with what it was made of: its program's address, its name there, and the dtypes of its scalars."""

    made_of: tuple[int, str, tuple[np.dtype | None, ...]]
    kernel: cl.Kernel


class IdleKernels:
    """Kernels between two executors. Each has one user at a time, since arguments are set before each launch."""

    def __init__(self) -> None:
        self._idle: list[TakenKernel] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._idle)

    def take(self, program: cl.Program, name: str, types: Sequence[np.dtype | None]) -> TakenKernel:
        """Return a kernel that is idle, or a new one.

        Args:
            program: built.
            name: of the kernel in it.
            types: the dtype of each scalar parameter, None for buffers.
        """
        # A kernel keeps its program alive, so that no other program has that address.
        made_of = program.int_ptr, name, tuple(types)
        with self._lock:
            for position in reversed(range(len(self._idle))):
                if self._idle[position].made_of == made_of:
                    return self._idle.pop(position)
        with _generating:
            kernel = cl.Kernel(program, name)
            # Declaring the types once makes a scalar argument free. Without them each costs 10 microseconds.
            kernel.set_scalar_arg_dtypes(list(types))
        return TakenKernel(made_of, kernel)

    def give_back(self, taken: TakenKernel) -> None:
        """Take back a kernel that its user does not launch any more; of too many the oldest is dropped."""
        with self._lock:
            self._idle.append(taken)
            del self._idle[:-_MOST_KERNELS]

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._idle.clear()
