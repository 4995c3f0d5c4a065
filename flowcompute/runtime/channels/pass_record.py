"""The numbers of one pass: of its stages, and of what lies between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flowcompute.metrics import EdgeMetrics, NodeMetrics
from flowcompute.runtime.channels.batch_pool import Pool
from flowcompute.runtime.channels.channel import Channel
from flowcompute.runtime.events import ComputeTotals, StageReporter, StageTotals


class PassRecord:
    """The stages of one pass, in the order of the plan, and what their events sum up to.

    Args:
        sources, compute, sinks: the stages.
        transfers: the two ends of the compute stage, where its batches overlap.
        seconds: as of `StageTotals`.

    Attributes:
        sources, compute, sinks, transfers: as given.
        totals: the numbers of each stage.
        steps: those of the compute stage.
        edges: the channels, with the buffers that go through them.
    """

    def __init__(
        self,
        sources: list[StageReporter],
        compute: StageReporter,
        sinks: list[StageReporter],
        transfers: tuple[StageReporter, StageReporter] | None = None,
        seconds: Callable[[], float] | None = None,
    ) -> None:
        self.sources = sources
        self.compute = compute
        self.sinks = sinks
        self.transfers = transfers
        self.steps = ComputeTotals(compute.name, seconds)
        self.totals = {stage: StageTotals(stage.name, seconds) for stage in self.stages} | {compute: self.steps}
        self.edges: list[tuple[Channel, Pool]] = []

    @property
    def stages(self) -> list[StageReporter]:
        """The stages, upstream first."""
        uploads, downloads = ([], []) if self.transfers is None else ([self.taker], [self.giver])
        return [*self.sources, *uploads, self.compute, *downloads, *self.sinks]

    @property
    def taker(self) -> StageReporter:
        """The stage that takes what sources give."""
        return self.compute if self.transfers is None else self.transfers[0]

    @property
    def giver(self) -> StageReporter:
        """The stage that gives destinations what they take."""
        return self.compute if self.transfers is None else self.transfers[1]

    def rows(self) -> list[NodeMetrics]:
        """Return a row for each source, step and destination, and for the transfers between them."""
        totals = self.totals
        rows = [self._at_edges(stage, stage, totals[stage].row("source")) for stage in self.sources]
        if self.transfers is not None:
            rows.append(totals[self.taker].row("transfer"))
        steps = self.steps.step_rows()
        rows += [self._at_edges(self.taker, self.giver, row) if row.batches else row for row in steps]
        if self.transfers is not None:
            rows.append(totals[self.giver].row("transfer"))
        return rows + [self._at_edges(stage, stage, totals[stage].row("destination")) for stage in self.sinks]

    def _at_edges(self, taker: StageReporter, giver: StageReporter, row: NodeMetrics) -> NodeMetrics:
        """Return a row with what lies before its stage and what holds its output."""
        pools = {id(pool): pool for channel, pool in self.edges if channel.producer is giver}.values()
        queued = sum(channel.queued for channel, _ in self.edges if channel.consumer is taker)
        lent, peak_bytes = sum(pool.lent for pool in pools), sum(pool.peak_bytes for pool in pools)
        return replace(row, queued=queued, credits=lent, peak_bytes=peak_bytes)

    def edge_rows(self) -> list[EdgeMetrics]:
        """Return a row for each edge."""
        return [
            EdgeMetrics(
                channel.producer.name,
                channel.consumer.name,
                channel.queued,
                channel.capacity,
                pool.lent,
                pool.count,
                pool.peak_bytes,
            )
            for channel, pool in self.edges
        ]

    @property
    def loads(self) -> dict[str, float]:
        """Seconds in which each stage kept the others waiting; the compute stage under the name of its busiest step."""
        steps, totals = self.steps.steps, self.totals
        busiest = max(steps, key=lambda name: steps[name][1], default=None)
        loads = {} if busiest is None else {busiest: self.steps.load_s}
        # What a source waits for lies outside of the run, and is its own affair.
        loads |= {stage.name: sum(totals[stage].spent()[:2]) for stage in self.sources}
        if self.transfers is not None:
            # What devices compute before it is its turn is computed by whoever uploads it.
            ahead_s = self.steps.load_s - self.steps.spent()[1]
            loads[self.taker.name] = max(0.0, totals[self.taker].spent()[1] - ahead_s)
            loads[self.giver.name] = totals[self.giver].spent()[1]
        return loads | {stage.name: totals[stage].spent()[1] for stage in self.sinks}
