"""Options for a run's numbers, and the consumers that write them elsewhere."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowcompute.errors import MetricsWarning, PlanError, short_repr
from flowcompute.files import path_text
from flowcompute.imports import LateModule, dataclass
from flowcompute.observe.consumer import Consumer, RunView
from flowcompute.observe.events import EventStream
from flowcompute.observe.json_log import MetricsLog
from flowcompute.observe.page import LivePage, check_page_port
from flowcompute.observe.trace_file import Trace
from flowcompute.strategy import Log

if TYPE_CHECKING:
    from flowcompute.observe import exporter
else:
    exporter = LateModule("flowcompute.observe.exporter")


@dataclass(frozen=True, slots=True)
class Observe:
    """The places where a run's numbers go.

    Attributes:
        metrics: whether histories are kept and launches counted and timed.
        port: where to serve Prometheus, if anywhere; see `parse_port`.
        trace: where to write a trace, if anywhere.
        log: where to write JSON lines, if anywhere.
        name: what trace, lines and page call the run.
        page: the port of a page that shows the run, if there is to be one.
    """

    metrics: bool = True
    port: int | str | None = None
    trace: str | os.PathLike[str] | None = None
    log: Log | None = None
    name: str | None = None
    page: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.metrics, bool):
            raise PlanError(
                "cannot use this value", element="metrics", expected="True or False", got=short_repr(self.metrics)
            )
        wanted = {"metrics_port": self.port, "trace": self.trace, "metrics_log": self.log, "page": self.page}
        asked = [name for name, value in wanted.items() if value is not None]
        if asked and not self.metrics:
            raise PlanError(
                f"cannot use {asked[0]}= without metrics",
                element=asked[0],
                got="metrics=False",
                hint="leave metrics=False out",
            )
        if self.port is not None:
            exporter.parse_port(self.port)
        if self.page is not None:
            check_page_port(self.page)
        paths: dict[str, Any] = {"trace": self.trace, "metrics_log": self.log}
        if hasattr(self.log, "write"):
            del paths["metrics_log"]
        for name, path in paths.items():
            try:
                _ = path is None or path_text(path)
            except ValueError as error:
                raise PlanError("cannot use this value", element=name, expected="a path", got=str(error)) from error


_CONSUMERS: tuple[Callable[[Observe, RunView], Consumer | None], ...] = (
    lambda asked, view: None if asked.trace is None else Trace(asked.trace, view, asked.name),
    lambda asked, view: None if asked.port is None else exporter.Exporter(asked.port, view.snapshot),
    lambda asked, view: None if asked.log is None else MetricsLog(asked.log, view.snapshot, asked.name),
    lambda asked, view: None if asked.page is None else LivePage(asked.page, view, asked.name),
)
"""Makes each consumer that is asked for. A new one has a file of its own, and its line here."""


class Observers:
    """The consumers of a run or a flow, from `open` to `close`.

    Args:
        observe: what is asked for.
        view: of the run.
        stream: the events of the run.
    """

    def __init__(self, observe: Observe, view: RunView, stream: EventStream) -> None:
        self._observe = observe
        self._view = view
        self._stream = stream
        self._lock = threading.Lock()
        self._consumers: list[Consumer] = []

    def open(self) -> None:
        """Begin; whoever fails leaves nothing of the others.

        Raises:
            DestinationError, RunError: if a file cannot be written, or a port not be had.
        """
        opened: list[Consumer] = []
        try:
            for make in _CONSUMERS:
                consumer = make(self._observe, self._view)
                if consumer is not None:
                    opened.append(consumer)
        except BaseException:
            for consumer in opened:
                consumer.discard()
            raise
        for consumer in opened:
            self._stream.subscribe(consumer.takes())
        self._consumers = opened

    @property
    def port(self) -> int | None:
        """The port where Prometheus is served; None where it is not, and after the end."""
        if self._observe.port is None:
            return None
        return next((one.port for one in tuple(self._consumers) if isinstance(one, exporter.Exporter)), None)

    @property
    def page(self) -> str | None:
        """The address of the page; None where there is none, and after the end."""
        return next((one.address for one in tuple(self._consumers) if isinstance(one, LivePage)), None)

    def close(self) -> None:
        """End: the last line, the trace, no thread and no socket. Harmless when called again.

        The results of the run are safe, so that what cannot be written is told as a warning.
        """
        with self._lock:
            consumers, self._consumers = self._consumers, []
        problems = [consumer.close() for consumer in reversed(consumers)]
        for problem in filter(None, problems):
            warnings.warn(problem, MetricsWarning, stacklevel=2)
