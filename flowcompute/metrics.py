"""Metrics of a run: plain records without clocks or files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal, NamedTuple

from flowcompute.html import table
from flowcompute.imports import dataclass

NodeKind = Literal["source", "region", "transfer", "destination"]


class BatchMetrics(NamedTuple):
    """Metrics of one stage for one batch; units as in `NodeMetrics`.

    Attributes:
        items, bytes_in, bytes_out: of the batch.
        batches: 1, or more if several were counted at once.
        wait_in_s, busy_s, wait_out_s: seconds since the end of the previous batch.
        ended_s: end of the batch, in seconds since the start of the run.
    """

    items: int
    batches: int
    bytes_in: int
    bytes_out: int
    wait_in_s: float
    busy_s: float
    wait_out_s: float
    ended_s: float


class Span(NamedTuple):
    """An interval with a name, in seconds since the start of the run."""

    name: str
    began_s: float
    ended_s: float
    records: tuple[int, int] | None = None


class Track(NamedTuple):
    """The newest spans of a stage or a queue, in order. `lost` older ones were dropped."""

    name: str
    spans: tuple[Span, ...]
    lost: int


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """Metrics of one stage of the plan so far.

    Attributes:
        name: the stage's name in the plan.
        kind: kind of the stage. Host functions count as regions; a transfer is between host and device.
        items: records processed; a record counts once in each pass.
        batches: batches processed.
        bytes_in, bytes_out: bytes of streams read and written.
        wait_in_s: seconds waiting for input. The regions of a pass run one after the other on the same batch, and wait
            together. One that runs once, before or after the batches, waits for none.
        busy_s: seconds at work.
        wait_out_s: seconds waiting for a free buffer or for a slower stage to take the output.
        launches: kernels launched.
        device_s: seconds of the launches on the device, estimated from those that were timed there.
        compile_s: seconds of building its kernel or loading it from the cache.
        queued: batches that wait before it now.
        credits: buffers of its output that are in use now.
        peak_bytes: the most bytes that the buffers of its output took.
        passes: passes that it worked in.
        uneven: whether they had different numbers of records, as the first one of a run that goes on.
        place: the user's lines of what it computes: "script.py:7, 9".
        recent: its last batches, oldest first; 128 at most.
    """

    name: str
    kind: NodeKind
    items: int
    batches: int
    bytes_in: int
    bytes_out: int
    wait_in_s: float
    busy_s: float
    wait_out_s: float
    launches: int = 0
    device_s: float = 0.0
    compile_s: float = 0.0
    queued: int = 0
    credits: int = 0
    peak_bytes: int = 0
    passes: int = 1
    uneven: bool = False
    place: str = ""
    recent: tuple[BatchMetrics, ...] = field(default=(), repr=False)

    @property
    def records(self) -> str:
        """The records and batches in words, those of one pass where each had as many."""
        return self.told("record")

    def told(self, what: str) -> str:
        """Return its records and batches in words.

        Args:
            what: the word for a record; texts of runs have always said "item".
        """
        each = self.items // self.passes
        if self.passes > 1 and not self.uneven and each * self.passes == self.items:
            records = f"{counted(each, what)} in each of {self.passes} passes"
        else:
            records = counted(self.items, what) + (f" in {self.passes} passes" if self.passes > 1 else "")
        return f"{records}, {counted(self.batches, 'batch')}"


@dataclass(frozen=True, slots=True)
class EdgeMetrics:
    """Metrics of the queue between two stages.

    Attributes:
        source, target: their names; "compute" for the stage that runs the regions of a pass.
        queued: batches in the queue.
        room: capacity of the queue in batches.
        credits: buffers in use: being filled, in the queue, or in the target's hands. The destinations of one value
            share its buffers. A value that is computed in place has none.
        buffers: the most buffers that there may be.
        peak_bytes: the most bytes that they took.
    """

    source: str
    target: str
    queued: int
    room: int
    credits: int
    buffers: int
    peak_bytes: int


class PassProgress(NamedTuple):
    """Progress of the pass that a run is in.

    Attributes:
        number: of the pass, from 1.
        passes: their number.
        items: records computed in it.
        total_items: records to compute in it, or None while that is unknown.
        streams: that nothing joins, whose records are added up. Streams that an element reads together are one. Of a
            job in a checkpoint it is not known, and 1.
    """

    number: int
    passes: int
    items: int
    total_items: int | None
    streams: int = 1

    def __str__(self) -> str:
        known = self.total_items is not None and self.items != self.total_items
        records = f"{self.items:,} of {self.total_items:,} records" if known else counted(self.items, "record")
        records += f" of {self.streams} streams" if self.streams > 1 else ""
        return f"pass {self.number} of {self.passes}, {records}" if self.passes > 1 else records


def counted(number: int, what: str) -> str:
    """Return a number of things in words: "1 record", "4,000 records", "2 batches", "2 passes"."""
    several = "es" if what.endswith(("ch", "ss")) else "s"
    return f"{number:,} {what}{'' if number == 1 else several}"


class StepTold(NamedTuple):
    """A step of a training.

    Attributes:
        training: its name.
        step: the number of the step, from 1 on.
        numbers: the loss, as "loss", and the measures where the training was evaluated after the step.
    """

    training: str
    step: int
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run.

    Attributes:
        items: records computed, over all passes: a record counts once in each pass.
        total_items: records to compute over all passes, or None while that is unknown.
        bytes_read: bytes that the sources gave.
        seconds: seconds since the start, including earlier runs of a resumed job. The value is final once the run has
            ended.
        done: whether the run has ended, successfully or not.
        skipped: records that failed and were dropped so far; see `Run.skipped`.
        bytes_written: bytes that the destinations took.
        current: progress of the pass that it is in; of a run in one pass the same numbers. None where passes are not
            known.
        share: fraction computed where records of some passes stand for several, as steps of trainings do; None where
            all count alike.
    """

    items: int
    total_items: int | None
    bytes_read: int
    seconds: float
    done: bool
    skipped: int = 0
    bytes_written: int = 0
    current: PassProgress | None = None
    share: float | None = None

    @property
    def records(self) -> str:
        """The records of the pass that it is in: "pass 2 of 2, 1,500 of 4,000,000 records".

        Of a job that is complete they are those of all passes: "4,000,000 records in each of 2 passes".
        """
        current = self.current or PassProgress(1, 1, self.items, self.total_items)
        if not self.done or current.passes == 1 or self.items != self.total_items:
            return str(current)
        each = "each" if current.items * current.passes == self.items else "the last"
        return f"{current._replace(number=1, passes=1)} in {each} of {current.passes} passes"

    @property
    def fraction(self) -> float | None:
        """Fraction computed, between 0 and 1, or None while the total is unknown.

        A step of a training counts as the records that it takes.
        """
        if self.share is not None:
            return self.share
        if self.total_items is None:
            return None
        return min(self.items / self.total_items, 1.0) if self.total_items else float(self.done)

    @property
    def throughput(self) -> float:
        """Bytes read and written per second, on average."""
        return (self.bytes_read + self.bytes_written) / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining_s(self) -> float | None:
        """Seconds remaining at the average pace, or None if that is unknown."""
        if self.done:
            return 0.0
        if self.total_items is None or not self.items:
            return None
        if self.share is not None:
            return self.seconds * (1 - self.share) / self.share
        return self.seconds * max(self.total_items - self.items, 0) / self.items

    def __str__(self) -> str:
        share = "" if self.fraction is None else f" ({self.fraction:.0%})"
        sizes = f"{self.bytes_read:,} bytes read, {self.bytes_written:,} bytes written"
        return f"{self.records}{share} in {self.seconds:.3f} s, {sizes}"


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Cost of the checkpoints of a run so far.

    Attributes:
        count: checkpoints that this run has committed.
        number: number of the newest one; None before the first.
        pause_s: total seconds in which no batch was computed.
        longest_pause_s: longest of these pauses.
        write_s: seconds of writing, hashing and syncing, parallel to the batches except for the last checkpoint.
        age_s: seconds since the newest was committed, which a kill would lose. It is None before the first, and final
            once the run has ended.
    """

    count: int = 0
    number: int | None = None
    pause_s: float = 0.0
    longest_pause_s: float = 0.0
    write_s: float = 0.0
    age_s: float | None = None

    def __str__(self) -> str:
        return (
            f"{self.count:,} {'checkpoint' if self.count == 1 else 'checkpoints'}: {self.pause_s:.3f} s of pause, "
            f"{self.longest_pause_s:.3f} s at most, {self.write_s:.3f} s of writing"
        )


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that was dropped because a user's own code failed at it.

    Attributes:
        element: name of the element at which it failed.
        record: its index in the element's input. For `fc.iterate` it is the position, from 0, of the yielded batch or
            item.
        error: the error's type.
        text: message of the error, perhaps shortened.
    """

    element: str
    record: int
    error: str
    text: str

    def __str__(self) -> str:
        return f"record {self.record}: {self.error}: {self.text}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """The records that an element has dropped.

    Attributes:
        count: their number.
        first: the first ones, 100 at most.
    """

    count: int = 0
    first: tuple[FailedRecord, ...] = ()

    def __str__(self) -> str:
        return f"{self.count:,} skipped" + (f", first {self.first[0]}" if self.first else "")


class Metrics(Mapping[str, NodeMetrics]):
    """The rows of a run by stage name. The name of an element gives the row of its stage.

    Args:
        rows: one for each stage, in the order of the plan.
        aliases: element name -> name of the stage it runs in.
        edges: metrics of the queues between the stages.

    Attributes:
        edges: as given.
    """

    def __init__(
        self, rows: Mapping[str, NodeMetrics], aliases: Mapping[str, str], edges: tuple[EdgeMetrics, ...] = ()
    ) -> None:
        self._rows = dict(rows)
        self._aliases = aliases
        self.edges = edges

    def __getitem__(self, name: str) -> NodeMetrics:
        row = self._rows.get(name) or self._rows.get(self._aliases.get(name, name))
        if row is None:
            raise KeyError(f"cannot find row {name!r}: there are {', '.join(map(repr, self._rows)) or 'none'}")
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<Metrics of {counted(len(self), 'stage')}: {', '.join(self._rows)}>"

    def __str__(self) -> str:
        cells = [_HEAD, *map(_cells, self._rows.values())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [[text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in cells]
        return "\n".join("  ".join(line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return table(_HEAD, map(_cells, self._rows.values()))


_HEAD = ("stage", "where", "records", "busy s", "wait in s", "wait out s", "on device s", "MB in", "MB out")


def _cells(row: NodeMetrics) -> tuple[str, ...]:
    """Return a row as texts, under `_HEAD`."""
    seconds = (row.busy_s, row.wait_in_s, row.wait_out_s, row.device_s)
    sizes = (row.bytes_in / 1e6, row.bytes_out / 1e6)
    return (row.name, row.place, row.records, *(f"{one:.3f}" for one in seconds), *(f"{one:,.1f}" for one in sizes))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All metrics of a run at one moment, for exporters.

    Attributes:
        metrics: a row for each stage.
        progress: progress of the run.
        checkpoints: cost of its checkpoints.
        bottleneck: the stage that limits the others.
        launches: kernels launched.
        bytes_written: bytes that the destinations wrote.
        peak_bytes: the most bytes that its buffers took.
    """

    metrics: Metrics
    progress: Progress
    checkpoints: Checkpoints
    bottleneck: str | None
    launches: int
    bytes_written: int
    peak_bytes: int
