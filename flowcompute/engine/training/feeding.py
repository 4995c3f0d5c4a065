"""Records of a step, given to executors in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Self

import numpy as np

from flowcompute.batch import Batch
from flowcompute.elements.training import GivenStream
from flowcompute.engine.backend import DRAIN, Executor
from flowcompute.engine.stopping import check_stopped, part_done
from flowcompute.schedule import Clock, Pass
from flowcompute.thread_pool import PendingCalls, ThreadPool

Records = Callable[[int, int, int], np.ndarray]
"""`records(place, start, stop)` gives records of the source at that place; the array is kept until the run ends.
Several threads may ask, for different records."""


def feed(executor: Executor, one: Pass, records: Records, threads: ThreadPool) -> None:
    """Give all records of a pass to its executor.

    Args:
        executor: of the pass, at its beginning.
        one: the pass.
        records: gives records of the sources.
        threads: that upload.
    """
    starts = [0] * len(one.clocks)
    number = 0
    with _BatchesUnderWay(executor, threads) as under_way:
        while (wanted := executor.wants()) is not None:
            check_stopped()
            if wanted == DRAIN:
                executor.drain({})
                continue
            clock, length = one.clocks[wanted], one.clocks[wanted].length or 0
            while under_way.has_room and starts[wanted] < length:
                start = starts[wanted]
                stop = starts[wanted] = min(start + clock.batch_items, length)
                batch = Batch(number, start, stop, read(clock, start, stop, records), wanted)
                under_way.begin(batch, alone=stop - start == length)
                number += 1
            if under_way.process_next():
                part_done()
            else:
                executor.end(wanted, {})


def feed_part(
    executor: Executor,
    clock: Clock,
    part: tuple[int, int],
    records: Records,
    threads: ThreadPool,
    goes_on: Callable[[], bool],
) -> None:
    """Give some records of a pass to an executor that stands at the first of them; the pass is not ended.

    Args:
        executor: of a pass with one clock.
        clock: that one.
        part: the first record, and the one after the last.
        records: gives records of the sources.
        threads: that upload.
        goes_on: asked before each batch.
    """
    (begin, end), number = part, 0
    with _BatchesUnderWay(executor, threads) as under_way:
        while goes_on():
            while under_way.has_room and begin < end:
                stop = min(begin + clock.batch_items, end)
                batch = Batch(number, begin, stop, read(clock, begin, stop, records), clock.id)
                # Nothing is computed while the first one is uploaded, which takes longer beside others.
                under_way.begin(batch, alone=not number)
                begin, number = stop, number + 1
            if not under_way.process_next():
                return
            part_done()


def read(clock: Clock, start: int, stop: int, records: Records) -> dict[int, np.ndarray]:
    """Return records of the sources of a clock, by value."""
    arrays = {}
    for source in clock.sources:
        assert isinstance(source.element, GivenStream)
        arrays[source.value] = records(source.element.place, start, stop)
    return arrays


class _BatchesUnderWay:
    """Batches of a pass that were given to an executor, in the order of their records.

    Where batches may overlap, each is uploaded in a thread, and several devices compute at a time.

    Args:
        executor: of the pass. Batches of several clocks are given one by one.
        threads: that upload.
    """

    def __init__(self, executor: Executor, threads: ThreadPool) -> None:
        self._executor, self._threads = executor, threads
        self._begun: deque[tuple[Batch, PendingCalls[int] | None]] = deque()

    @property
    def has_room(self) -> bool:
        """True while another batch may begin."""
        return len(self._begun) < self._executor.in_flight

    def begin(self, batch: Batch, *, alone: bool) -> None:
        """Upload a batch, in a thread where it is not `alone`: others can be computed meanwhile."""
        executor, uploaded = self._executor, None
        if executor.in_flight > 1:
            upload = partial(executor.upload, batch)
            if alone:
                upload()
            else:
                uploaded = self._threads.begin([upload], executor.lanes)
        self._begun.append((batch, uploaded))

    def process_next(self) -> bool:
        """Process the first batch that has begun; False where there is none."""
        if not self._begun:
            return False
        batch, uploaded = self._begun[0]
        if uploaded is not None:
            uploaded.wait()
        self._begun.popleft()
        self._executor.process(batch, {})
        if self._executor.in_flight > 1:
            self._executor.download(batch)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for uploads that nobody wants any more."""
        for _batch, uploaded in self._begun:
            if uploaded is not None:
                uploaded.forget()
