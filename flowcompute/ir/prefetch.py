"""Prefetch statement of the kernel IR."""

from __future__ import annotations

from dataclasses import dataclass

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
