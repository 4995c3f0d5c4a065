"""A process that is killed at any operation: the next one finds the generation before or the new one, complete."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.checkpoint.scenarios import LATER, LONG, PATH, SCENARIOS, Scenario, found, prepared, resumed, run
from tests.support.disk import Disk
from tests.support.simulated_files import SimulatedFiles

MOMENTS = ("before", "torn", "after")


def crashes(scenario: Scenario) -> Iterator[tuple[Disk, set[int]]]:
    """The disks that a crash at each operation leaves, and the generations that may be found on each."""
    start = prepared(scenario)
    whole = run(scenario, start.copy())
    for index, moment in itertools.product(range(len(whole.files.log)), MOMENTS):
        disk = start.copy()
        crashed = run(scenario, disk, crash_at=index, moment=moment)
        assert len(crashed.files.log) == index + 1
        counted = whole.counted[index]
        yield disk, {counted, counted + 1}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_a_crash_at_any_operation_leaves_one_generation_or_the_next(scenario: Scenario) -> None:
    seen = set()
    for disk, expected in crashes(scenario):
        k = found(SimulatedFiles(disk), go_on=True)
        assert k in expected
        seen.add(k)
    assert seen == set(range(scenario.before - 1, scenario.after + 1))


def test_a_crash_during_recovery_changes_nothing() -> None:
    # What the first crash left is recovered by a process that crashes too, at each of its operations.
    distinct = {repr(disk.tree()): (disk, expected) for disk, expected in crashes(LATER)}
    step = 1 if LONG else 7
    for disk, expected in list(distinct.values())[::step]:
        before = found(SimulatedFiles(disk.copy()))
        assert before in expected
        again = LATER._replace(before=before + 1)
        operations = len(run(again, disk.copy()).files.log)
        for index in range(0, operations, step):
            left = disk.copy()
            crashed = run(again, left, crash_at=index, moment=MOMENTS[index % 3])
            assert found(SimulatedFiles(left)) in {crashed.counted[-1], crashed.counted[-1] + 1}


def test_what_was_begun_and_never_committed_is_removed_before_the_job_goes_on() -> None:
    start = prepared(LATER)
    whole = run(LATER, start.copy())
    head = next(index for index, step in enumerate(whole.files.log) if step.path.endswith("/HEAD"))
    run(LATER, start, crash_at=head)
    assert f"{PATH}/gen-00000003.msgpack" in start.tree()
    folder, _, k = resumed(SimulatedFiles(start), PATH)
    assert k == 2
    assert not [path for path in start.tree() if "gen-00000003" in path]
    # Its number was used: nothing of it can be taken for what comes next.
    assert folder.commit({}) == 4


def test_a_checkpoint_that_a_killed_process_was_making_is_made_anew() -> None:
    start = prepared(SCENARIOS[0])
    run(SCENARIOS[0], start, crash_at=20)
    assert any(".job.building/gen" in path for path in start.tree())
    assert found(SimulatedFiles(start), go_on=True) == -1
    assert not [path for path in start.tree() if "building" in path]
