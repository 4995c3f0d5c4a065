"""Warns of results that no disk has room for, before hours are spent on them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from flowcompute.elements import warn_at
from flowcompute.errors import DestinationWarning, Site
from flowcompute.schedule.explain import Plan
from flowcompute.sinks import StoredSink


def warn_of_full_disks(plan: Plan, site: Site | None) -> None:
    """Warn where the results whose size is known do not fit on their disk, as it is now.

    A quota, or files that others write meanwhile, are not seen; what is freed meanwhile may make room. So it is a
    warning, and the run begins.

    Args:
        plan: what is about to run.
        site: the user's line that runs it.
    """
    needed: dict[int, int] = {}
    rooms: dict[int, tuple[str, int]] = {}
    for sink, size in _known_sizes(plan):
        folder = os.path.dirname(sink.target)
        try:
            device, free = sink.files.stat(folder).st_dev, sink.files.free_bytes(folder)
        except OSError:
            # Opening the file tells what is wrong.
            continue
        needed[device] = needed.get(device, 0) + size
        rooms[device] = folder, free
    for device, size in needed.items():
        folder, free = rooms[device]
        if size > free:
            warn_at(
                site,
                f"the results need {size:,} bytes in {folder}, and {free:,} are free there: free space, or choose "
                "another disk; with checkpoint= a job that a full disk has ended goes on after that",
                DestinationWarning,
            )


def _known_sizes(plan: Plan) -> Iterator[tuple[StoredSink, int]]:
    """Yield the files of a plan with their sizes in bytes, where these are known."""
    for node in plan.asked.nodes:
        sink, spec = node.element, node.spec
        if isinstance(sink, StoredSink) and (spec.stream is None or spec.length is not None):
            header = len(sink.header(spec, spec.length))
            yield sink, header + (1 if spec.length is None else spec.length) * spec.item_bytes
