"""A power cut at any moment: what commit and publish have returned for is there, whatever else the disk has lost."""

from __future__ import annotations

import pytest

from flowcompute.testing import Disk, SimulatedFiles, power_cuts
from tests.checkpoint.scenarios import LONG, SCENARIOS, Scenario, found, prepared, run

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


@pytest.mark.parametrize("scenario", SCENARIOS if LONG else SCENARIOS[:2], ids=lambda one: one.name)
def test_no_fsync_can_be_left_out(scenario: Scenario) -> None:
    syncs = first_loss(scenario)[1]
    assert syncs > 5
    needless = [index for index in range(syncs) if first_loss(scenario, deaf_to=index)[0] is None]
    assert needless == []
