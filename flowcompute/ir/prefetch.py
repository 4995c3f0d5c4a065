"""Prefetch statements of the kernel IR."""

from __future__ import annotations

from flowcompute.imports import dataclass
from flowcompute.ir.index_nodes import IndexLike
from flowcompute.ir.nodes import Argument, Copying

LINE_BYTES = 64
"""Size of a cache line."""


@dataclass(frozen=True, slots=True)
class Prefetch(Copying):
    """Fetch the cache line of number `index` before it is read, or `written`.

    The index may be outside of the argument.
    """

    argument: Argument
    index: IndexLike
    written: bool


@dataclass(frozen=True, slots=True)
class PrefetchRun(Copying):
    """Fetch `count` neighbouring numbers from `index` on into the cache that all compute units share.

    The run exists, and begins at a multiple of `RUN_BYTES` in memory. Its size is a multiple of them, too. It is an
    instruction of compute capability 9.0 (`cp.async.bulk.prefetch.L2` of the PTX ISA, section 9.7.9.25).
    """

    argument: Argument
    index: IndexLike
    count: int


RUN_BYTES = 16
"""Divisor of the first place and of the size of a `PrefetchRun`, in bytes."""
