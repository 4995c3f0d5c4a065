"""Launches whose arguments stay set. They are given by the driver's own functions, which pyopencl has loaded."""

from __future__ import annotations

import ctypes
import struct
import sys
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from flowcompute.gpu.device._cl import cl

BOUND_AFTER = 4
"""Repetitions after which arguments of launches stay set. To set them takes as long as some repetitions."""

_FUNCTIONS = ("clCreateKernel", "clSetKernelArg", "clEnqueueNDRangeKernel", "clReleaseKernel")

_LONG, _POINTER = struct.Struct("q"), struct.Struct("P")


@cache
def driver_functions() -> Any | None:
    """Return the driver's functions, called with the interpreter's lock held; None where pyopencl does not show them.

    They last microseconds. To give up the lock and to get it again may take as long.
    """
    try:
        functions = ctypes.PyDLL(sys.modules[cl.Kernel.__module__].__file__)
        for name in _FUNCTIONS:
            getattr(functions, name)
    except (AttributeError, OSError):
        return None
    functions.clCreateKernel.restype = ctypes.c_void_p
    return functions


class BoundKernel:
    """A launch in the order of a queue, with a kernel of its own, so that its arguments stay set.

    For each launch pyopencl takes all arguments again, and makes an event. A call that fails here is given to pyopencl
    again, whose errors are raised.

    Args:
        queue: in order.
        kernel: built; its arguments are not touched.
        types: the dtype of each scalar parameter, None for buffers.
        values: what its arguments are first; None for one that is put before the first launch.
        size: number of work-items.
        work_group: work-items in each work-group.

    Raises:
        cl.Error: if the driver refuses an argument, or has no room.
    """

    __slots__ = (
        "__weakref__",
        "_enqueue",
        "_kernel",
        "_launch",
        "_of",
        "_put",
        "_queue",
        "_sizes",
        "_types",
        "_values",
    )

    def __init__(
        self,
        queue: cl.CommandQueue,
        kernel: cl.Kernel,
        types: Sequence[np.dtype | None],
        values: Sequence[Any],
        size: int,
        work_group: int,
    ) -> None:
        functions, code, program, name = driver_functions(), ctypes.c_int(0), kernel.program, kernel.function_name
        assert functions is not None, "asked for where the driver's functions are there"
        self._of: object
        made = functions.clCreateKernel(ctypes.c_void_p(program.int_ptr), name.encode(), ctypes.byref(code))
        if made is None:
            # It takes a hundred times as long, and says what is wrong.
            own = cl.Kernel(program, name)
            self._queue, self._of, made = queue, own, own.int_ptr
        else:
            self._queue, self._of = queue, program
            weakref.finalize(self, functions.clReleaseKernel, ctypes.c_void_p(made)).atexit = False
        self._put, self._enqueue = functions.clSetKernelArg, functions.clEnqueueNDRangeKernel
        self._kernel, self._types = ctypes.c_void_p(made), types
        self._values: list[Any] = [None] * len(types)
        self._sizes = ctypes.c_size_t(size), ctypes.c_size_t(work_group)
        none, null = ctypes.c_uint(0), ctypes.c_void_p(0)
        where = ctypes.c_void_p(queue.int_ptr), self._kernel, ctypes.c_uint(1), null
        self._launch = (*where, *map(ctypes.byref, self._sizes), none, null, null)
        for place, value in enumerate(values):
            if value is not None:
                self.put(place, value)

    def put(self, place: int, value: Any) -> None:
        """Set an argument, unless it is that.

        Raises:
            cl.Error: if the driver refuses it.
        """
        if self._values[place] is value:
            return
        dtype = self._types[place]
        if dtype is None:
            given = _POINTER.pack(value.int_ptr)
        else:
            # Most are indices, which NumPy would take a microsecond for.
            given = _LONG.pack(value) if dtype == np.int64 else np.array(value, dtype).tobytes()
        # An interrupt may come before the new one is noted.
        self._values[place] = None
        if self._put(self._kernel, ctypes.c_uint(place), ctypes.c_size_t(len(given)), given):
            self._told.set_arg(place, value if dtype is None else np.array(value, dtype)[()])
        self._values[place] = value

    def launch(self) -> None:
        """Launch it, and leave the waiting to others. No event is made.

        Raises:
            cl.Error: if the driver refuses it.
        """
        if self._enqueue(*self._launch):
            size, work_group = self._sizes
            cl.enqueue_nd_range_kernel(self._queue, self._told, (size.value,), (work_group.value,))

    @property
    def _told(self) -> cl.Kernel:
        """The kernel as pyopencl has it."""
        return cl.Kernel.from_int_ptr(self._kernel.value or 0)
