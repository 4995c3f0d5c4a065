"""Those who watch a run on a cluster: a line of progress, Prometheus, a log of metrics, a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from flowcompute.distributed.cluster.cluster_record import ClusterRecord
from flowcompute.observe import EventStream, Observers, RunEnded, RunView
from flowcompute.runtime.channels import Display
from flowcompute.runtime.events import about, picture_of
from flowcompute.runtime.options import RunOptions
from flowcompute.schedule.explain import Plan
from flowcompute.strategy import Tuning


@contextmanager
def watched(plan: Plan, record: ClusterRecord, options: RunOptions) -> Iterator[None]:
    """Show the numbers of a run to whoever was asked for, until the end of the block.

    The address of a page, and the port of metrics, are written to standard error: `fc.run` gives nothing to ask before
    its end.

    Raises:
        DestinationError, RunError: if a file cannot be written, or a port not be had.
    """
    view = RunView(
        snapshot=record.snapshot,
        seconds=lambda: record.seconds,
        about=lambda: about(plan, record.metrics, plan.strategy, Tuning()),
        tracks=0,
        picture=lambda: picture_of(plan, record.metrics),
        kernels=lambda: {kernel.name: kernel.source for kernel in plan.kernels},
        planned_bytes=plan.memory.host_bytes,
    )
    stream = EventStream()
    observers = Observers(options.observe, view, stream)
    observers.open()
    try:
        metrics = None if observers.port is None else f"metrics on port {observers.port}"
        for told in filter(None, (observers.page, metrics)):
            print(f"{options.name or 'flowcompute'}: {told}", file=sys.stderr)  # noqa: T201
        display = Display.start(record, options.progress, name=options.name)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            record.end()
            stream.emit(RunEnded(record.seconds, error))
            error = None
            if display is not None:
                display.stop()
    finally:
        observers.close()
