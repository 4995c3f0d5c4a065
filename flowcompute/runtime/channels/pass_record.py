"""The live records of one pass: its stages, and what lies between them."""

from __future__ import annotations

from dataclasses import replace

from flowcompute.metrics import EdgeMetrics, NodeMetrics
from flowcompute.runtime.channels.batch_pool import Pool
from flowcompute.runtime.channels.channel import Channel
from flowcompute.runtime.events import ComputeRecord, StageRecord


class PassRecord:
    """The stages of one pass, in the order of the plan.

    Attributes:
        sources, compute, sinks: the live records.
        transfers: of the two ends of the compute stage, where its batches overlap.
        edges: the channels, with the buffers that go through them.
    """

    def __init__(
        self,
        sources: list[StageRecord],
        compute: ComputeRecord,
        sinks: list[StageRecord],
        transfers: tuple[StageRecord, StageRecord] | None = None,
    ) -> None:
        self.sources = sources
        self.compute = compute
        self.sinks = sinks
        self.transfers = transfers
        self.edges: list[tuple[Channel, Pool]] = []

    @property
    def stages(self) -> list[StageRecord]:
        """All stages, upstream first."""
        uploads, downloads = ([], []) if self.transfers is None else ([self.taker], [self.giver])
        return [*self.sources, *uploads, self.compute, *downloads, *self.sinks]

    @property
    def taker(self) -> StageRecord:
        """Who takes what sources give."""
        return self.compute if self.transfers is None else self.transfers[0]

    @property
    def giver(self) -> StageRecord:
        """Who gives destinations what they take."""
        return self.compute if self.transfers is None else self.transfers[1]

    def rows(self) -> list[NodeMetrics]:
        """A row for each source, step and destination, and for the transfers between them."""
        rows = [self._at_edges(record, record, record.row("source")) for record in self.sources]
        if self.transfers is not None:
            rows.append(self.taker.row("transfer"))
        rows += [self._at_edges(self.taker, self.giver, row) for row in self.compute.step_rows()]
        if self.transfers is not None:
            rows.append(self.giver.row("transfer"))
        return rows + [self._at_edges(record, record, record.row("destination")) for record in self.sinks]

    def _at_edges(self, taker: StageRecord, giver: StageRecord, row: NodeMetrics) -> NodeMetrics:
        """A row with what lies before its stage and what holds its output."""
        pools = {id(pool): pool for channel, pool in self.edges if channel.producer is giver}.values()
        queued = sum(channel.queued for channel, _ in self.edges if channel.consumer is taker)
        lent, peak_bytes = sum(pool.lent for pool in pools), sum(pool.peak_bytes for pool in pools)
        return replace(row, queued=queued, credits=lent, peak_bytes=peak_bytes)

    def edge_rows(self) -> list[EdgeMetrics]:
        """A row for each edge."""
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
        steps = self.compute.steps
        busiest = max(steps, key=lambda name: steps[name][1], default=None)
        loads = {} if busiest is None else {busiest: self.compute.load_s}
        # What a source waits for lies outside of the run, and is its own affair.
        loads |= {record.name: sum(record.spent()[:2]) for record in self.sources}
        if self.transfers is not None:
            # What devices compute before it is its turn is computed by whoever uploads it.
            ahead_s = self.compute.load_s - self.compute.spent()[1]
            loads[self.taker.name] = max(0.0, self.taker.spent()[1] - ahead_s)
            loads[self.giver.name] = self.giver.spent()[1]
        return loads | {record.name: record.spent()[1] for record in self.sinks}
