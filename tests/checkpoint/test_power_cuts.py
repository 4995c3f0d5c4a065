"""A power cut at any moment: what commit and publish have returned for is there, whatever else the disk has lost."""

from __future__ import annotations

import pytest

from flowcompute.checkpoint.store.folder import CheckpointFolder
from tests.checkpoint.scenarios import FIRST, LONG, PATH, SCENARIOS, SECOND, Scenario, found, prepared, run
from tests.support.disk import Disk, power_cuts
from tests.support.simulated_files import SimulatedFiles

MOST = 1 << 12 if LONG else 1 << 7
DRAWN = 10_000 if LONG else 40


def outcome(disk: Disk, known: dict[str, object]) -> object:
    """The generation that is found, or what went wrong."""
    tree = {path: data for path, data in disk.tree().items() if not path.endswith("/LOCK")}
    key = repr(tree)
    if key not in known:
        try:
            known[key] = found(SimulatedFiles(disk))
        except (Exception, AssertionError) as error:  # noqa: BLE001 - all of them are what is looked for
            known[key] = repr(error)
    return known[key]


def first_loss(scenario: Scenario, deaf_to: int | None = None) -> tuple[str | None, int]:
    """What a power cut can do to a scenario, and how many syncs that had."""
    start = prepared(scenario)
    whole = run(scenario, start.copy(), deaf_to=deaf_to)
    log = whole.files.log
    known: dict[str, object] = {}
    syncs = sum(step.name.startswith("fsync") for step in log)
    for index in range(len(log), -1, -1):
        for disk in power_cuts(start, log[:index], MOST, DRAWN, seed=index):
            got = outcome(disk, known)
            if got not in {whole.counted[index], whole.counted[index] + 1} or (
                index == len(log) and got != scenario.after
            ):
                return f"after {index} operations: {got}", syncs
    return None, syncs


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_a_power_cut_after_any_operation_loses_nothing_that_was_committed(scenario: Scenario) -> None:
    assert first_loss(scenario)[0] is None


def loss_after_a_kill(scenario: Scenario, at: int, deaf_to: int | None = None) -> str | None:
    """What a power cut can do to a process that goes on where another one was killed after an operation."""
    start = prepared(scenario)
    disk = start.copy()
    killed = run(scenario, disk, crash_at=at, moment="after")
    if not CheckpointFolder.exists(PATH, SimulatedFiles(disk)):
        return None
    resuming = run(SECOND._replace(before=0), disk, deaf_to=deaf_to)
    log = resuming.files.log
    known: dict[str, object] = {}
    for index in range(len(log), -1, -1 if LONG else -3):
        least = max(killed.counted[-1], resuming.counted[index])
        for left in power_cuts(start, [*killed.files.log, *log[:index]], 1 << 7, 40, seed=index):
            got = outcome(left, known)
            if got not in {least, least + 1}:
                return f"killed after {at}, power cut after {index} more: {got}"
    return None


def moments(scenario: Scenario) -> list[int]:
    """After which operations names are not durable that the next process sees: renames, and what lies around them."""
    log = run(scenario, prepared(scenario)).files.log
    renames = [index for index, step in enumerate(log) if step.name in ("replace", "rename_folder")]
    return list(range(len(log))) if LONG else renames[-2:]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_what_a_killed_process_did_not_make_durable_the_next_one_does(scenario: Scenario) -> None:
    assert [loss for at in moments(scenario) if (loss := loss_after_a_kill(scenario, at))] == []


@pytest.mark.parametrize(("scenario", "sync"), [(SECOND, 0), (FIRST, 1)], ids=["the folder", "the one above"])
def test_neither_folder_may_be_left_unsynced_by_who_resumes(scenario: Scenario, sync: int) -> None:
    assert any(loss_after_a_kill(scenario, at, deaf_to=sync) for at in moments(scenario))


@pytest.mark.parametrize("scenario", SCENARIOS if LONG else [FIRST, SECOND], ids=lambda one: one.name)
def test_no_fsync_can_be_left_out(scenario: Scenario) -> None:
    syncs = first_loss(scenario)[1]
    assert syncs > 5
    # Who resumes makes durable what a killed process may not have: here nobody was killed.
    of_recovery = 2 if scenario.before else 0
    needless = [index for index in range(of_recovery, syncs) if first_loss(scenario, deaf_to=index)[0] is None]
    assert needless == []
