"""View of a flow while it is open and afterwards."""

from __future__ import annotations

from flowcompute.metrics import Metrics, Progress, Skipped
from flowcompute.runtime.flows.flow_core import FlowCore
from flowcompute.schedule.explain import Plan


class WatchedFlow:
    """The numbers of a flow; all may be asked for from any thread, at any time.

    Attributes:
        plan: what is run for each batch.
    """

    plan: Plan
    _core: FlowCore

    @property
    def sent(self) -> dict[str, int]:
        """Records sent by feed since the flow began (in "reset" mode: began anew), those before a freeze included."""
        return self._core.sent

    @property
    def waiting(self) -> int:
        """Results that were not received so far."""
        return self._core.waiting

    @property
    def skipped(self) -> dict[str, Skipped]:
        """The records dropped since the flow was opened by each element with `on_error=`; also when it is closed.

        In "reset" mode record indices begin anew after each `resolve`, counts do not.
        """
        return self._core.skipped

    @property
    def metrics(self) -> Metrics:
        """The work of each feed, region and result since the flow was opened; also by the names of elements.

        Seconds in which nobody sent anything are those that the feeds were waited for. Results that
        nobody has received are `queued`.
        """
        return self._core.record.metrics

    @property
    def progress(self) -> Progress:
        """The records computed, and the seconds."""
        return self._core.record.progress

    @property
    def bottleneck(self) -> str | None:
        """The busiest region, or the feed that is waited for longer than was computed; None before the first `send`."""
        return self._core.record.bottleneck

    @property
    def metrics_port(self) -> int | None:
        """The port where Prometheus is served; None where none is, and when the flow is closed."""
        return self._core.record.observers.port
