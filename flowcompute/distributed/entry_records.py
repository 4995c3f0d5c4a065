"""Records of one clock that see those of another, at each kind of entry."""

from __future__ import annotations

from flowcompute.imports import dataclass
from flowcompute.rewrite import Entry
from flowcompute.schedule.memory import padding, span

COUNTED = "select"
"""The operation whose records are known by counting alone."""

JOINED = "concat"
"""The operation that joins streams end to end."""

ENTERING = frozenset({"select", "section", "flatten", "repeat", "cut", "each", "window", JOINED})


@dataclass(frozen=True)
class EntryRecords:
    """Way into a clock: record `j` sees the records from `j // times * step - before` on, `size` of them.

    Attributes:
        name: of the operation; "" for what enters unchanged.
        size, step, before: of the neighbours, of which some may lie outside of the stream.
        after: records that are added behind the stream.
        times: records that one becomes.
        most: the most records; None for any.
        reflects: whether what is added at the ends mirrors the stream.
    """

    name: str = ""
    size: int = 1
    step: int = 1
    before: int = 0
    after: int = 0
    times: int = 1
    most: int | None = None
    reflects: bool = False

    def needed(self, record: int) -> int:
        """Return the first record of the origin that a record, or one after it, sees."""
        return max(0, record // max(1, self.times) * self.step - self.before)

    def available(self, records: int) -> int:
        """Return the records that can be made of so many of the origin, while more of them come."""
        begun = records and (records > self.before or not self.reflects)
        return self._capped(max(0, (records + self.before - self.size) // self.step + 1) if begun else 0)

    def whole(self, records: int) -> int:
        """Return the records of a stream whose origin has so many."""
        more = self.before + self.after if records else 0
        return self._capped(max(0, (records + more - self.size) // self.step + 1))

    def earliest(self, begin: int) -> int:
        """Return the first record that sees nothing before a record of the origin."""
        return self._capped(max(0, -(-(begin + self.before) // self.step)) if begin else 0)

    def skip(self, begin: int, record: int) -> int:
        """Return what an input buffer drops that is fed from one record of the origin on, for a record to be first."""
        if self.name in ("window", "cut"):
            return record * self.step - (begin + self.before if begin else 0)
        # The first run that ends is the one that the feeding begins in.
        return record - (begin // self.step if self.name == "each" else self.earliest(begin))

    def _capped(self, runs: int) -> int:
        made = runs * self.times
        return made if self.most is None else min(made, self.most)


def records_at(entry: Entry) -> EntryRecords:
    """Return how records enter at an entry that is neither `COUNTED` nor `JOINED`."""
    node = entry.node
    if node is None or node.op is None:
        return EntryRecords()
    name, attrs = node.op.name, node.attrs
    if name == "section":
        most = None if attrs["stop"] is None else len(range(attrs["start"], attrs["stop"], attrs["step"]))
        return EntryRecords(name, step=attrs["step"], before=-attrs["start"], most=most)
    if name == "flatten":
        return EntryRecords(name, times=attrs["numbers"])
    if name == "repeat":
        return EntryRecords(name, times=attrs["count"])
    if name == "each":
        return EntryRecords(name, size=attrs["every"], step=attrs["every"], after=attrs["every"] - 1)
    size, step = span(node)
    if name == "cut":
        return EntryRecords(name, size, step, after=size - 1 if attrs["tail"] == "pad" else 0)
    before, after = padding(node)
    return EntryRecords(name, size, step, before, after, reflects=node.attrs["pad"] == "reflect")


def is_joined(entry: Entry) -> bool:
    """Check whether an entry joins streams end to end."""
    return entry.node is not None and entry.node.op is not None and entry.node.op.name == JOINED


def is_counted(entry: Entry) -> bool:
    """Check whether the records of an entry are known by counting alone."""
    return entry.node is not None and entry.node.op is not None and entry.node.op.name == COUNTED
