"""The work of a shard by stage, for metrics: counted while it runs, and sent as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

from flowcompute.elements import State
from flowcompute.engine import Executor
from flowcompute.metrics import NodeKind, NodeMetrics
from flowcompute.schedule import LaunchLog

MOST_STAGES = 256
"""Stages of a shard that are told; messages stay small however long the plan is."""

_COUNTS = ("items", "batches", "bytes_in", "bytes_out", "launches")
_SECONDS = ("wait_in_s", "busy_s", "wait_out_s", "device_s", "compile_s")
_KINDS: tuple[NodeKind, ...] = get_args(NodeKind)

Key = tuple[NodeKind, str]
"""Kind and name of a stage."""


class ShardWork:
    """Work of one shard so far.

    Attributes:
        position: the record that it reads next; None before it reads.
        read_s: seconds of reading, in which nothing was computed.
        held_s: seconds in which results waited for those before them to be written.
    """

    def __init__(self) -> None:
        self.position: int | None = None
        self.read_s = 0.0
        self.held_s = 0.0
        self._rows: dict[Key, dict[str, Any]] = {}
        self._executors: dict[int, tuple[Executor, LaunchLog]] = {}
        self._ended: list[dict[Key, dict[str, Any]]] = []

    def watch(self, executor: Executor) -> None:
        """Count what an executor does, until `unwatch`."""
        log = executor.log = LaunchLog()
        self._executors[id(executor)] = executor, log

    def unwatch(self, executor: Executor) -> None:
        """Keep what an executor has done, and let go of it."""
        found = self._executors.pop(id(executor), None)
        if found is not None:
            self._ended.append(self._steps(*found))

    def passed(
        self, kind: NodeKind, name: str, items: int, seconds: float, *, bytes_in: int = 0, bytes_out: int = 0
    ) -> None:
        """Count a batch of a source or a destination."""
        row = self._rows.setdefault((kind, name), dict.fromkeys((*_COUNTS, *_SECONDS), 0))
        for field, more in (("items", items), ("batches", 1), ("bytes_in", bytes_in), ("bytes_out", bytes_out)):
            row[field] += more
        row["busy_s"] += seconds

    def rows(self) -> dict[Key, dict[str, Any]]:
        """Return the numbers of each stage."""
        rows = {key: dict(row) for key, row in self._rows.items()}
        for steps in (*self._ended, *(self._steps(*found) for found in tuple(self._executors.values()))):
            add_rows(rows, steps)
        return rows

    def as_data(self) -> list[list[Any]]:
        """Return the rows as plain data."""
        rows = list(self.rows().items())[:MOST_STAGES]
        return [[*key, *(row[field] for field in (*_COUNTS, *_SECONDS))] for key, row in rows]

    def _steps(self, executor: Executor, log: LaunchLog) -> dict[Key, dict[str, Any]]:
        traffic = executor.step_traffic()
        rows: dict[Key, dict[str, Any]] = {}
        for name, (batches, busy_s) in executor.step_seconds().items():
            items, bytes_in, bytes_out = traffic.get(name, (0, 0, 0))
            launched = log.steps.get(name)
            counts = (items, batches, bytes_in, bytes_out, launched.launches if launched else 0)
            waits = (self.read_s, busy_s, self.held_s) if batches else (0.0, busy_s, 0.0)
            timed = (launched.estimate_s, launched.compile_s) if launched else (0.0, 0.0)
            rows["region", name] = dict(zip((*_COUNTS, *_SECONDS), (*counts, *waits, *timed), strict=True))
        return rows


def add_rows(rows: dict[Key, dict[str, Any]], more: Mapping[Key, Mapping[str, Any]]) -> None:
    """Add the numbers of stages to those of the same stages."""
    for key, row in more.items():
        own = rows.setdefault(key, dict.fromkeys((*_COUNTS, *_SECONDS), 0))
        for field, number in row.items():
            own[field] += number


def rows_of_data(data: Any) -> dict[Key, State]:
    """Return the rows in what `ShardWork.as_data` gave, in another process.

    Raises:
        ValueError: if the data are of another form; so does TypeError.
    """
    rows: dict[Key, State] = {}
    for kind, name, *numbers in data[:MOST_STAGES]:
        row = dict(zip((*_COUNTS, *_SECONDS), numbers, strict=True))
        known = kind in _KINDS and type(name) is str
        counted = all(type(row[field]) is int and row[field] >= 0 for field in _COUNTS)
        if not known or not counted or not all(_is_time(row[field]) for field in _SECONDS):
            raise ValueError(f"the work of a stage {name!r}")
        rows[kind, name] = row
    return rows


def metrics_of(key: Key, row: Mapping[str, Any], place: str) -> NodeMetrics:
    """Return a row as metrics show it."""
    return NodeMetrics(name=key[1], kind=key[0], place=place, **row)


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= float(value) < math.inf  # type: ignore[arg-type]
