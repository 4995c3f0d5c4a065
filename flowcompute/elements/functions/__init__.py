"""Functions that users write: read, typed, and kept as plain data that backends evaluate or write as kernels."""

from flowcompute.elements.functions.callable_tables import OPERATIONS
from flowcompute.elements.functions.host_function import HostFunction, host
from flowcompute.elements.functions.kernel_function import TURNS, KernelFunction, UserOp, kernel, user_op
from flowcompute.elements.functions.opencl_function import SourceOp, opencl
from flowcompute.elements.functions.promote import Type
from flowcompute.elements.functions.statements import MOST_ITEMS

__all__ = [
    "MOST_ITEMS",
    "OPERATIONS",
    "TURNS",
    "HostFunction",
    "KernelFunction",
    "SourceOp",
    "Type",
    "UserOp",
    "host",
    "kernel",
    "opencl",
    "user_op",
]
