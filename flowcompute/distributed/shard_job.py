"""A job in shards: its passes one after the other, the shards of each in any order, one commit at the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np

from flowcompute.distributed.pass_shards import PartShards, RunShards, end_pass
from flowcompute.distributed.reduced_plans import count_clocks, parts_of, scans_of
from flowcompute.distributed.refusals import check_shardable
from flowcompute.distributed.shard_ranges import Records, part_ranges
from flowcompute.distributed.shard_runner import run_shard
from flowcompute.distributed.shard_start import Resident, ShardStart, ShardState
from flowcompute.elements import Constant, Writer
from flowcompute.engine import PlannedJob
from flowcompute.errors import PlanError
from flowcompute.schedule import SinkStage


class Writing(Protocol):
    """Destinations of a job that can go on after a failure."""

    def open(self, position: int, sink: SinkStage) -> Writer:
        """Open the destination of this position, or go on with what is there."""

    def seal(self, writers: Sequence[tuple[SinkStage, Writer]]) -> None:
        """Make all results durable, before the first gets its name."""


class ShardedJob:
    """A job whose passes run shard by shard, to the bits of one run over all records.

    Args:
        job: a plan, and what computes it here.
        shards: the most shards of a part of a pass; see `part_ranges`.

    Raises:
        PlanError: naming the element, if the job cannot be cut; or if `shards` is no positive number.
    """

    def __init__(self, job: PlannedJob, shards: int) -> None:
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise PlanError(
                "cannot cut a job into so many shards",
                element="shards",
                expected="a positive whole number",
                got=repr(shards),
                hint="as shards=8",
            )
        check_shardable(job.plan)
        self._job = job
        self._shards = shards

    def ranges(self, index: int) -> tuple[Records, ...]:
        """Return the records of each shard of a pass, part by part; none where it reads nothing."""
        plan = self._job.plan
        return tuple(
            records for clocks in parts_of(plan.passes[index]) for records in part_ranges(plan, clocks, self._shards)
        )

    def total_items(self) -> int:
        """Return the records that all shards of all stages read: a pass is counted and added up where it must be."""
        plan = self._job.plan
        total = 0
        for index, one in enumerate(plan.passes):
            stages = 1 + bool(count_clocks(one)) + bool(scans_of(plan, index))
            total += stages * sum(clock.length or 0 for clock in one.clocks if clock.is_root)
        return total

    def run(self, run_shards: RunShards | None = None, writing: Writing | None = None) -> tuple[Any, ...]:
        """Run all passes, commit, and return the values of the roots in their order. A failure leaves nothing written.

        Args:
            run_shards: runs the shards of a pass; by default one after the other, here.
            writing: opens and commits destinations, where they are kept after a failure.

        Raises:
            FlowError: as a run.
        """
        plan, run_shards = self._job.plan, run_shards or self._run_here
        resident: dict[int, np.ndarray] = {}
        writers: list[tuple[SinkStage, Writer]] = []
        try:
            # What fails soonest comes first.
            for sink in (sink for one in plan.passes for sink in one.sinks):
                opened = sink.element.open(sink.spec) if writing is None else writing.open(len(writers), sink)
                writers.append((sink, opened))
            waiting = iter(tuple(writers))
            for index, one in enumerate(plan.passes):
                here = [writer for _, writer in islice(waiting, len(one.sinks))]
                self._run_pass(index, here, resident, run_shards)
            if writing is not None:
                writing.seal(writers)
            values = {}
            while writers:
                sink, writer = writers[0]
                values[sink.root] = writer.commit()
                del writers[0]
        finally:
            for _, writer in writers:
                (writer.abort if writing is None else writer.suspend)()
        return tuple(values[root] for root in sorted(values) if root != SinkStage.NO_ROOT)

    def _run_pass(
        self, index: int, writers: Sequence[Writer], resident: dict[int, np.ndarray], run_shards: RunShards
    ) -> None:
        """Run the shards of a pass, and end it; its whole values are added to `resident`."""
        one = self._job.plan.passes[index]
        sinks = list(zip(one.sinks, writers, strict=True))
        regions = {
            place: "" if sink.element.in_memory else writer.lend()
            for place, (sink, writer) in enumerate(sinks)
            if sink.spec.is_stream
        }
        parts = [PartShards(self._job, index, number, self._shards, run_shards) for number in range(len(parts_of(one)))]
        for part in parts:
            part.run(self._handed_over(resident), regions)
        executor = self._job.executor(index, resident)
        try:
            executor.open()
            end_pass(executor, self._job, index, parts)
            made = executor.finish()
        finally:
            executor.close()
        for place, (sink, writer) in enumerate(sinks):
            if not sink.spec.is_stream:
                writer.write(made[sink.value], 0)
                continue
            part = next(part for part in parts if part.makes(sink.value))
            if sink.element.in_memory:
                for first, records in part.streamed(place):
                    writer.write(records, first)
            else:
                writer.filled(part.written(place))

    def _run_here(self, index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        return [run_shard(self._job, index, start) for start in starts]

    def _handed_over(self, resident: Resident) -> Resident:
        nodes = self._job.plan.graph.nodes
        return {i: array for i, array in resident.items() if not isinstance(nodes[i].element, Constant)}
