"""A barrier: a cut through a running pass that moves along its edges, between two batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from flowcompute.elements import State
from flowcompute.imports import LateModule

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


class CheckpointBarrier:
    """Comes behind the records that count and before those that do not, and collects what each destination has by then.

    Args:
        starts: by root clock the first record that does not count.
        executor: the state of the compute stage.
        sinks: positions of all destinations opened so far.
        known: the state of those that the barrier need not reach.
    """

    def __init__(
        self, starts: Mapping[int, int], executor: State, sinks: Iterable[int], known: Mapping[int, State]
    ) -> None:
        self.starts = dict(starts)
        self.executor = executor
        self.sinks = dict(known)
        self._missing = set(sinks) - set(known)
        self._passed = trio.Event()
        if not self._missing:
            self._passed.set()

    def reach(self, sink: int, state: State) -> None:
        """Note that a destination has written all that counts, and nothing else."""
        self.sinks[sink] = state
        self._missing.remove(sink)
        if not self._missing:
            self._passed.set()

    async def passed(self) -> None:
        """Wait until it has reached every destination."""
        await self._passed.wait()

    def release(self) -> None:
        """Do nothing, since it holds no buffer."""
