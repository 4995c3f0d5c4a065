"""The numbers of a run in Prometheus's terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flowcompute.metrics import NodeMetrics, Snapshot

MOST_ELEMENTS = 256
"""Elements that get labels of their own; the first ones of the plan."""

_COUNTERS: tuple[tuple[str, str, Callable[[NodeMetrics], float]], ...] = (
    ("items", "Records that passed.", lambda row: row.items),
    ("batches", "Batches that passed.", lambda row: row.batches),
    ("in_bytes", "Bytes of streams taken.", lambda row: row.bytes_in),
    ("out_bytes", "Bytes of streams given.", lambda row: row.bytes_out),
    ("launches", "Kernels launched.", lambda row: row.launches),
    ("wait_in_seconds", "Seconds waiting for input.", lambda row: row.wait_in_s),
    ("busy_seconds", "Seconds at work.", lambda row: row.busy_s),
    ("wait_out_seconds", "Seconds waiting for the output to be taken.", lambda row: row.wait_out_s),
    ("device_seconds", "Seconds on the device, estimated from a sample.", lambda row: row.device_s),
    ("compile_seconds", "Seconds of building the kernel.", lambda row: row.compile_s),
)

_GAUGES: tuple[tuple[str, str, Callable[[NodeMetrics], float]], ...] = (
    ("queued_batches", "Batches that lie before it now.", lambda row: row.queued),
    ("credits", "Buffers of its output in use now.", lambda row: row.credits),
    ("peak_bytes", "The most that the buffers of its output took.", lambda row: row.peak_bytes),
)


class RunCollector(Collector):
    """Reads a run when it is asked.

    Args:
        snapshot: gives the numbers.
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the names are ours alone in the registry, and need no trial run to be known."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return all families."""
        now = self._snapshot()
        rows = list(now.metrics.values())[:MOST_ELEMENTS]
        for name, text, number in _COUNTERS:
            counter = CounterMetricFamily(f"flowcompute_{name}", text, labels=("element", "kind"))
            for row in rows:
                counter.add_metric((row.name, row.kind), number(row))
            yield counter
        for name, text, number in _GAUGES:
            gauge = GaugeMetricFamily(f"flowcompute_{name}", text, labels=("element", "kind"))
            for row in rows:
                gauge.add_metric((row.name, row.kind), number(row))
            yield gauge
        yield from _of_run(now)


def _of_run(now: Snapshot) -> Iterator[Metric]:
    progress, kept = now.progress, now.checkpoints
    yield CounterMetricFamily("flowcompute_run_items", "Records computed.", progress.items)
    yield CounterMetricFamily("flowcompute_run_read_bytes", "Bytes that the sources gave.", progress.bytes_read)
    yield CounterMetricFamily("flowcompute_run_written_bytes", "Bytes that destinations took.", now.bytes_written)
    yield CounterMetricFamily("flowcompute_run_skipped", "Records dropped by error policies.", progress.skipped)
    yield CounterMetricFamily("flowcompute_run_checkpoints", "Checkpoints committed.", kept.count)
    yield GaugeMetricFamily("flowcompute_run_seconds", "Seconds since the start of the job.", progress.seconds)
    yield GaugeMetricFamily("flowcompute_run_peak_bytes", "The most that its own buffers took.", now.peak_bytes)
    if progress.total_items is not None:
        yield GaugeMetricFamily("flowcompute_run_expected_items", "Records to compute.", progress.total_items)
    if progress.remaining_s is not None:
        text = "Seconds to go at the average pace."
        yield GaugeMetricFamily("flowcompute_run_remaining_seconds", text, progress.remaining_s)
    if kept.age_s is not None:
        text = "Seconds since the newest checkpoint."
        yield GaugeMetricFamily("flowcompute_run_checkpoint_age_seconds", text, kept.age_s)
    if now.bottleneck is not None:
        gauge = GaugeMetricFamily(
            "flowcompute_run_bottleneck", "1 for the stage that is waited for.", labels=["element"]
        )
        gauge.add_metric([now.bottleneck], 1)
        yield gauge
