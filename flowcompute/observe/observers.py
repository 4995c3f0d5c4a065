"""What is asked for of a run's numbers, and those who write them elsewhere."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from flowcompute.errors import MetricsWarning, PlanError
from flowcompute.files import path_text
from flowcompute.metrics import Snapshot, Track
from flowcompute.observe.exporter import Exporter, parse_port
from flowcompute.observe.json_log import MetricsLog
from flowcompute.observe.trace_file import SPANS, Trace

Log = str | os.PathLike[str] | TextIO


@dataclass(frozen=True, slots=True)
class Observe:
    """What is to be known of a run.

    Attributes:
        metrics: whether histories are kept and launches counted and timed.
        port: where to serve Prometheus, if anywhere; see `parse_port`.
        trace: where to write a trace, if anywhere.
        log: where to write JSON lines, if anywhere.
    """

    metrics: bool = True
    port: int | str | None = None
    trace: str | os.PathLike[str] | None = None
    log: Log | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.metrics, bool):
            raise PlanError(
                "cannot use this value", element="metrics", expected="True or False", got=repr(self.metrics)
            )
        wanted = {"metrics_port": self.port, "trace": self.trace, "metrics_log": self.log}
        asked = [name for name, value in wanted.items() if value is not None]
        if asked and not self.metrics:
            raise PlanError(
                f"{asked[0]}= needs metrics", element=asked[0], got="metrics=False", hint="leave metrics=False out"
            )
        if self.port is not None:
            parse_port(self.port)
        paths: dict[str, Any] = {"trace": self.trace, "metrics_log": self.log}
        if hasattr(self.log, "write"):
            del paths["metrics_log"]
        for name, path in paths.items():
            try:
                _ = path is None or path_text(path)
            except ValueError as error:
                raise PlanError("cannot use this value", element=name, expected="a path", got=str(error)) from error

    @property
    def spans(self) -> int:
        """Spans to be kept altogether."""
        return 0 if self.trace is None else SPANS


class Observers:
    """Those who write a run's numbers elsewhere, from `open` to `close`.

    Args:
        observe: what is asked for.
        snapshot: gives the numbers.
        tracks: gives what the stages did.
        about: gives what else a report needs, as plain data.
    """

    def __init__(
        self,
        observe: Observe,
        snapshot: Callable[[], Snapshot],
        tracks: Callable[[], Sequence[Track]],
        about: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._about = about
        self._observe = observe
        self._snapshot = snapshot
        self._tracks = tracks
        self._lock = threading.Lock()
        self._trace: Trace | None = None
        self._log: MetricsLog | None = None
        self._exporter: Exporter | None = None

    def open(self) -> None:
        """Begin; whoever fails leaves nothing of the others.

        Raises:
            DestinationError, RunError: if a file cannot be written, or a port not be had.
        """
        asked = self._observe
        try:
            self._trace = None if asked.trace is None else Trace(asked.trace)
            self._exporter = None if asked.port is None else Exporter(asked.port, self._snapshot)
            self._log = None if asked.log is None else MetricsLog(asked.log, self._snapshot)
        except BaseException:
            if self._trace is not None:
                self._trace.discard()
            if self._exporter is not None:
                self._exporter.close()
            self._trace, self._exporter = None, None
            raise

    @property
    def port(self) -> int | None:
        """Where Prometheus is served; None where it is not, and after the end."""
        exporter = self._exporter
        return None if exporter is None else exporter.port

    def close(self) -> None:
        """End: the last line, the trace, no thread and no socket. Harmless when called again.

        The results of the run are safe, so that what cannot be written is told as a warning.
        """
        with self._lock:
            trace, log, exporter = self._trace, self._log, self._exporter
            self._trace, self._log, self._exporter = None, None, None
        problems: list[str | None] = []
        if exporter is not None:
            exporter.close()
        if log is not None:
            problems.append(log.close())
        if trace is not None:
            problems.append(trace.close(self._tracks(), self._snapshot(), self._about()))
        for problem in filter(None, problems):
            warnings.warn(problem, MetricsWarning, stacklevel=2)
