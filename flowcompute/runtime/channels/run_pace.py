"""The pace of a run, from what its stages remember of their last batches."""

from __future__ import annotations

from itertools import pairwise

from flowcompute.runtime.channels.pass_record import PassRecord
from flowcompute.runtime.channels.run_record import RunRecord
from flowcompute.strategy import Pace


def pace_of(record: RunRecord) -> Pace | None:
    """Return how long a record took lately, in the pass with most batches; None where that is not known."""
    return Pace.of(max(map(_seconds, tuple(record.passes)), key=len, default=[]))


def _seconds(one: PassRecord) -> list[float]:
    """Return the seconds of a record in the last batches but the first: there kernels are made and caches filled."""
    recent = one.steps.row("region").recent
    return [(new.ended_s - old.ended_s) / new.items for old, new in pairwise(recent) if new.items]
