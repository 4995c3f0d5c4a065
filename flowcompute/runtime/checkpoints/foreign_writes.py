"""Refuses what a checkpoint, and not the user, would have a job write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flowcompute.elements import HostFunction
from flowcompute.errors import CheckpointError
from flowcompute.files import FILES, shown
from flowcompute.graph import Graph
from flowcompute.imports import LateModule
from flowcompute.schedule.explain import Plan
from flowcompute.sinks import StoredSink
from flowcompute.sources import IterateSource

if TYPE_CHECKING:
    from flowcompute.checkpoint import job as jobs
else:
    jobs = LateModule("flowcompute.checkpoint.job")

_BELOW = "\n" + " " * 12


def refuse_foreign_writes(plan: Plan, token: str = "", body: Mapping[str, Any] | None = None) -> None:
    """Refuse a plan with destinations that a checkpoint has named, and that nothing proves to be the job's own.

    What users name in their program is theirs to write, also where a checkpoint is resumed by it.

    Args:
        plan: what runs.
        token: of the checkpoint that it goes on from; empty without one.
        body: of its generation; None without one.

    Raises:
        CheckpointError: with each path that is not to be written.
    """
    doubts = [
        f"{shown(one.target)}: {one.doubt}"
        for target, allow in _named_by_checkpoints(plan.asked)
        for one in jobs.find_writes([target], token, body or {}, allow, FILES)
        if one.doubt is not None
    ]
    if doubts:
        raise CheckpointError(
            "cannot write what the checkpoint names and this job has not begun here",
            expected="new files, or those that the job was writing",
            got=_BELOW.join(doubts),
            hint="look at it with `flowcompute checkpoint show`; if that is what you want, name the folders that it "
            "may write to: --allow FOLDER, or fc.thaw(path, allow=[folder])",
        )


def _named_by_checkpoints(graph: Graph) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the targets that came out of a checkpoint, with the folders whose files may be replaced."""
    for node in graph.nodes:
        element = node.element
        if isinstance(element, StoredSink) and element.allow is not None:
            yield element.target, element.allow
        if isinstance(element, HostFunction | IterateSource):
            policy = element.policy
            if policy.path is not None and policy.allow is not None:
                yield policy.path, policy.allow
