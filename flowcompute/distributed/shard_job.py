"""A job in shards: its passes one after the other, the shards of each in any order, one commit at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowcompute.distributed.refusals import check_shardable
from flowcompute.distributed.shard_ranges import Records, shard_ranges, shard_unit
from flowcompute.distributed.shard_runner import MALFORMED, run_shard
from flowcompute.distributed.shard_start import Resident, ShardStart, ShardState
from flowcompute.elements import Constant, Writer
from flowcompute.engine import PlannedJob, ended_with
from flowcompute.errors import PlanError, RunError
from flowcompute.schedule import SinkStage

RunShards = Callable[[int, Sequence[ShardStart]], Sequence[ShardState]]
"""`run(pass, starts)` runs the shards of a pass, wherever and in any order, and gives what came of each."""


class ShardedJob:
    """A job whose passes run shard by shard, to the bits of one run over all records.

    Args:
        job: a plan, and what computes it here.
        shards: the most shards of a pass; see `shard_ranges`.

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
        """Return the records of each shard of a pass; none where it reads nothing."""
        plan = self._job.plan
        return tuple(
            records
            for clock in plan.passes[index].clocks
            for records in shard_ranges(clock.length or 0, shard_unit(plan, clock), self._shards)
        )

    def run(self, run_shards: RunShards | None = None) -> tuple[Any, ...]:
        """Run all passes, commit, and return the values of the roots in their order. A failure leaves nothing written.

        Args:
            run_shards: runs the shards of a pass; by default one after the other, here.

        Raises:
            FlowError: as a run.
        """
        plan, run_shards = self._job.plan, run_shards or self._run_here
        resident: dict[int, np.ndarray] = {}
        writers: list[tuple[SinkStage, Writer]] = []
        try:
            # What fails soonest comes first.
            writers += [(sink, sink.element.open(sink.spec)) for one in plan.passes for sink in one.sinks]
            waiting = iter(tuple(writers))
            for index, one in enumerate(plan.passes):
                ranges = self.ranges(index)
                handed_over = self._handed_over(resident)
                here = [next(waiting) for _ in one.sinks]
                streams = {place: writer for place, (sink, writer) in enumerate(here) if sink.spec.is_stream}
                regions = {place: writer.lend() for place, writer in streams.items()}
                starts = [ShardStart(records, handed_over, regions) for records in ranges]
                states = run_shards(index, starts) if starts else ()
                made = self._finished(index, ranges, states, resident)
                for place, (sink, writer) in enumerate(here):
                    if sink.spec.is_stream:
                        writer.filled(self._length_written(states, place))
                    else:
                        writer.write(made[sink.value], 0)
            values = {}
            while writers:
                sink, writer = writers[0]
                values[sink.root] = writer.commit()
                del writers[0]
        finally:
            for _, writer in writers:
                writer.abort()
        return tuple(values[root] for root in sorted(values) if root != SinkStage.NO_ROOT)

    def _run_here(self, index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        return [run_shard(self._job, index, start) for start in starts]

    @staticmethod
    def _length_written(states: Sequence[ShardState], place: int) -> int:
        """Return the records that shards have written of a stream.

        Raises:
            RunError: if they do not follow each other.
        """
        stop = 0
        for first, last in sorted(state.written.get(str(place), (-1, -1)) for state in states):
            if first != stop or last < first:
                raise RunError(
                    "cannot complete a result: shards have not written all of it",
                    expected=f"records from {stop} on",
                    got=f"records {first} to {last}",
                    hint="please report this",
                )
            stop = last
        return stop

    def _handed_over(self, resident: Resident) -> Resident:
        nodes = self._job.plan.graph.nodes
        return {i: array for i, array in resident.items() if not isinstance(nodes[i].element, Constant)}

    def _finished(
        self, index: int, ranges: Sequence[Records], states: Sequence[ShardState], resident: dict[int, np.ndarray]
    ) -> dict[int, np.ndarray]:
        """Merge the states of a pass's shards, and end the pass; its whole values are added to `resident`.

        Raises:
            RunError: if the states are not those of the ranges.
        """
        found = {(state.start, state.stop): state.folds for state in states}
        if sorted(found) != sorted(ranges) or len(states) != len(ranges):
            raise RunError(
                "cannot merge the shards of a pass",
                expected=f"states of {len(ranges)} shards, one of each",
                got=f"{len(states)}, of records {', '.join(f'{a} to {b}' for a, b in sorted(found)) or 'none'}",
                hint="please report this",
            )
        executor = self._job.executor(index, resident)
        try:
            executor.open()
            for clock in self._job.plan.passes[index].clocks:
                parts = [found[records] for records in ranges]
                try:
                    executor.restore(ended_with(executor.snapshot(), self._job.plan, clock, parts))
                except MALFORMED as error:
                    raise RunError(
                        "cannot merge the shards of a pass: their states do not fit",
                        expected="what `run_shard` gave",
                        got=str(error),
                        hint="run the job again, with one version of flowcompute everywhere",
                    ) from error
            return executor.finish()
        finally:
            executor.close()
