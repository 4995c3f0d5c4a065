"""The numbers of a run on a cluster: what shards tell while they run, and what they have done when they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from flowcompute.distributed.shard_reading import MALFORMED
from flowcompute.distributed.shard_work import Key, add_rows, metrics_of, rows_of_data
from flowcompute.metrics import Checkpoints, Metrics, Progress, Snapshot
from flowcompute.schedule import ExecutionPlan


class _Running:
    """Newest message of a shard.

    Attributes:
        attempt: tells the process that ran it from others.
        items: its records that are done.
        rows: the work of its stages.
    """

    def __init__(self, attempt: str, items: int, rows: Mapping[Key, Mapping[str, Any]]) -> None:
        self.attempt, self.items, self.rows = attempt, items, rows


class ClusterRecord:
    """Everything that is known of a run while it runs and afterwards. What it holds does not grow with time.

    Shards tell of their work in a thread of dask's; whoever asks may be in any.

    Args:
        plan: the job's.
        total_items: records that all shards of all stages read.
    """

    def __init__(self, plan: ExecutionPlan, total_items: int) -> None:
        self._places = plan.places
        self._aliases = plan.aliases
        self._order = {name: place for place, name in enumerate(self._places)}
        self._total_items = total_items
        self._lock = threading.Lock()
        self._running: dict[int, _Running] = {}
        self._items = 0
        self._rows: dict[Key, dict[str, Any]] = {}
        self._stage = -1
        self._began_s = time.perf_counter()
        self._ended_s: float | None = None

    # -- told ---------------------------------------------------------------------------------------

    def begin_stage(self) -> None:
        """Tell that shards of another stage begin; what shards of earlier ones still tell does not count."""
        with self._lock:
            self._running.clear()
            self._stage += 1

    def heard(self, told: Any) -> None:
        """Take what a running shard tells; anything else counts for nothing."""
        try:
            shard, attempt, items = told["shard"], told["attempt"], told["items"]
            rows = rows_of_data(told["work"])
        except MALFORMED:
            return
        if type(shard) is not int or type(items) is not int or items < 0 or told.get("stage") != self._stage:
            return
        with self._lock:
            before = self._running.get(shard)
            if before is not None and before.attempt != str(attempt):
                # A worker that died has worked, too.
                add_rows(self._rows, before.rows)
            self._running[shard] = _Running(str(attempt), items, rows)

    def ended(self, shard: int, items: int, work: Any) -> None:
        """Take what came of a shard.

        Args:
            shard: its number in the stage.
            items: its records.
            work: as of `ShardWork.as_data`.

        Raises:
            ValueError: if the work is of another form; so does TypeError.
        """
        rows = rows_of_data(work)
        with self._lock:
            self._running.pop(shard, None)
            self._items += items
            add_rows(self._rows, rows)

    def end(self) -> None:
        """Stop the clock."""
        self._ended_s = time.perf_counter()

    def complete(self) -> None:
        """Tell that all is done: some stages may have had nothing to do."""
        self._total_items = self._items

    # -- asked --------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds since the start, or from start to end."""
        return (time.perf_counter() if self._ended_s is None else self._ended_s) - self._began_s

    @property
    def progress(self) -> Progress:
        """The progress of all shards and stages together."""
        rows = self._now()
        with self._lock:
            items = self._items + sum(one.items for one in self._running.values())
        read = sum(row["bytes_out"] for (kind, _), row in rows.items() if kind == "source")
        written = sum(row["bytes_in"] for (kind, _), row in rows.items() if kind == "destination")
        total, done = max(self._total_items, items), self._ended_s is not None
        return Progress(items, total, read, self.seconds, done, bytes_written=written)

    @property
    def metrics(self) -> Metrics:
        """The work of each stage of the plan, of all shards together: seconds add up over workers."""
        rows = sorted(self._now().items(), key=lambda found: self._order.get(found[0][1], len(self._order)))
        made = [metrics_of(key, row, self._places.get(key[1], "")) for key, row in rows]
        return Metrics({row.name: row for row in made}, self._aliases)

    @property
    def bottleneck(self) -> str | None:
        """Name of the busiest stage; None before anything ran."""
        rows = self._now()
        return max(rows, key=lambda key: rows[key]["busy_s"], default=(None, None))[1]

    @property
    def kept(self) -> Checkpoints:
        """Nothing: shards keep their own states."""
        return Checkpoints()

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is told in words."""
        return ()

    def snapshot(self) -> Snapshot:
        """Return all of it."""
        metrics, progress = self.metrics, self.progress
        launches = sum(row.launches for row in metrics.values())
        return Snapshot(metrics, progress, self.kept, self.bottleneck, launches, progress.bytes_written, 0)

    def _now(self) -> dict[Key, dict[str, Any]]:
        with self._lock:
            rows = {key: dict(row) for key, row in self._rows.items()}
            for one in self._running.values():
                add_rows(rows, one.rows)
        return rows
