"""Notices when nothing moves, and says who holds up whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from flowcompute.errors import RunError
from flowcompute.imports import LateModule
from flowcompute.observe import StageState
from flowcompute.runtime.events.stage_reporter import WAITING, StageReporter

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


async def watch(
    stages: Sequence[StageReporter], timeout_s: float, on_stuck_thread: Callable[[RunError], None]
) -> NoReturn:
    """Sleep until no stage has changed what it does, or done a part of it, for `timeout_s` while one of them waits.

    Costs the stages nothing: it wakes up when the time might be over and looks.

    Args:
        stages: the stages of the pass, upstream first.
        timeout_s: seconds without any change.
        on_stuck_thread: called with the error first if a thread is still at work. Nothing can
            interrupt it, so the run itself will only end when the thread returns.

    Raises:
        RunError: naming the stage that holds up the others, and what every stage does.
    """
    parts, seen_s = 0, trio.current_time()
    while True:
        now = trio.current_time()
        states = {stage.state for stage in stages}
        if parts != (parts := sum(stage.parts_done for stage in stages)):
            seen_s = now
        quiet_s = now - max(seen_s, *(stage.since for stage in stages))
        if not states & WAITING or StageState.PAUSED in states:
            quiet_s = 0.0
        if quiet_s >= timeout_s:
            error = _stalled(stages, now, quiet_s)
            if StageState.BUSY in states:
                on_stuck_thread(error)
            raise error
        await trio.sleep(timeout_s - quiet_s)


def _stalled(stages: Sequence[StageReporter], now: float, quiet_s: float) -> RunError:
    busy = [stage for stage in stages if stage.state is StageState.BUSY]
    culprit = min(busy, key=lambda stage: stage.since) if busy else _upmost_waiting(stages)
    hint = "set stall_timeout_s higher, or to None, if this is only slow"
    if busy:
        hint += "; what the run has opened is put away when the thread returns"
    return RunError(
        f"the run stalled: nothing has moved for {quiet_s:.3g} s; {culprit.describe(now)}",
        element=culprit.label,
        records=culprit.records,
        expected="some stage to move",
        got="; ".join(f"{stage.name}: {stage.describe(now)}" for stage in stages),
        hint=hint,
    )


def _upmost_waiting(stages: Sequence[StageReporter]) -> StageReporter:
    """With nobody at work, a stage at the head of the chain of those that wait: an asynchronous source."""
    waiting = [stage for stage in stages if stage.state in WAITING]
    return next((stage for stage in waiting if stage.state is StageState.INPUT), waiting[-1])
