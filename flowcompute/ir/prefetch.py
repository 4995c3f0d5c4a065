"""Memory that a kernel asks for before it needs it."""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.ir.nodes import Argument, Copying

LINE_BYTES = 64
"""What is fetched at once."""


@dataclass(frozen=True, slots=True)
class Prefetch(Copying):
    """Bring the line round number `index` into a cache, to be read soon or `written`; there need be no such number."""

    argument: Argument
    index: str
    written: bool
