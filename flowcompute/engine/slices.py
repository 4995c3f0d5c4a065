"""Parts of a batch that a device has room for."""

from __future__ import annotations

from flowcompute.elements import Kind
from flowcompute.engine.stream_scheduler import Arrays
from flowcompute.schedule import Clock
from flowcompute.schedule.memory import span


def even(items: int, most: int, granule: int) -> int:
    """Of how many records the first slice is where all are about equal: a small rest would cost as much as a slice."""
    if items <= most:
        return items
    each = -(-items // -(-items // most))
    return -(-each // granule) * granule


def sliced(clock: Clock, arrays: Arrays, begin: int, stop: int) -> Arrays:
    """The same records of all values; of a window those that its records overlap in."""
    part = {value: array[begin:stop] for value, array in arrays.items()}
    for entry in clock.entries:
        if entry.node is not None and entry.node.kind is Kind.WINDOW:
            size, step = span(entry.node)
            part[entry.value] = arrays[entry.value][begin * step : (stop - 1) * step + size]
    return part
