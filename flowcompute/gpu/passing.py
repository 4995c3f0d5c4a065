"""Resident operands that do not fit a device together: each is uploaded when a kernel needs it, or just before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.gpu.memory import Memory
from flowcompute.planner.kernel import Kernel
from flowcompute.planner.plan import Pass
from flowcompute.planner.residency import kernels_of


class PassingOperands:
    """The ring of buffers that a pass's operands go through, in turns.

    Args:
        one_pass: says which operands these are, and how many buffers.
        memory: of the device.
        array: gives the whole value of an operand.
    """

    def __init__(self, one_pass: Pass, memory: Memory, array: Callable[[int], np.ndarray]) -> None:
        self._memory = memory
        self._array = array
        self._buffers = one_pass.ring
        self._turn = 0
        arguments = [one for kernel in kernels_of(one_pass.steps) for one in kernel.arguments]
        order = [one.value for one in arguments if one.kind == "input" and one.value in one_pass.passing]
        # After the last operand of a batch comes the first of the next one.
        self._next = dict(zip(order, [*order[1:], *order[:1]], strict=True))

    def buffer(self, value: int) -> Any:
        """A buffer with an operand in it, until so many others as the ring has buffers have been asked for."""
        self._turn += 1
        return self._memory.input(self._key(self._turn), self._array(value), fresh=True)

    def prefetch(self, kernel: Kernel) -> None:
        """Let the operand that is needed after a kernel's come while the kernel works."""
        mine = [one.value for one in kernel.arguments if one.kind == "input" and one.value in self._next]
        if mine:
            self._memory.prefetch(self._key(self._turn + 1), self._array(self._next[mine[-1]]))

    def _key(self, turn: int) -> tuple[str, int]:
        return ("ring", turn % self._buffers)
