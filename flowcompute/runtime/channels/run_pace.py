"""The pace of a run, from what its stages remember of their last batches."""

from __future__ import annotations

from itertools import pairwise

from flowcompute.runtime.channels.pass_record import PassRecord
from flowcompute.runtime.channels.run_record import RunRecord
from flowcompute.strategy import Pace


def pace_of(record: RunRecord) -> Pace | None:
    """How long a record took lately, in the pass with most batches; None where that is not known."""
    return Pace.of(max(map(_seconds, tuple(record.passes)), key=len, default=[]))


def _seconds(one: PassRecord) -> list[float]:
    """Seconds of a record in the last batches, without the first one: there kernels are made and caches filled."""
    history = one.compute.history
    recent = () if history is None else history.recent
    return [(new.ended_s - old.ended_s) / new.items for old, new in pairwise(recent) if new.items]
