"""A disk that refuses: the error names the path, the generation before is there, and it works again afterwards."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path

import pytest

from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.errors import CheckpointError, CheckpointWarning
from flowcompute.files.file_layer import FILES, Files
from tests.checkpoint.scenarios import (
    LATER,
    PATH,
    SCENARIOS,
    Scenario,
    advance,
    first,
    found,
    lead_up,
    prepared,
    reproducible,
    resumed,
    run,
    side_bytes,
)
from tests.support.faulty_files import FaultyFiles
from tests.support.simulated_files import SimulatedFiles

CODES = (errno.ENOSPC, errno.EIO)


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_every_operation_may_fail(scenario: Scenario, code: int) -> None:
    start = prepared(scenario)
    whole = run(scenario, start.copy())
    for index, step in enumerate(whole.files.log):
        disk = start.copy()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                run(scenario, disk, fail_at=index, error=code)
                failed = None
            except CheckpointError as error:
                failed = error
        # Only what is not needed any more may stay behind, and that is said.
        assert (failed is None) == (step.name == "remove"), step
        text = str(failed or said[0].message)
        assert "/data" in text
        assert errno.errorcode[code] in text
        assert failed is None or failed.hint
        if "/gen-" in step.path and step.name != "remove":
            # What can be removed does not fill the disk until the next commit.
            number = step.path.partition("/gen-")[2][:8]
            assert not [path for path in disk.tree() if number in path], step
        assert failed is None or not [path for path in disk.tree() if path.endswith(".partial")], step
        if failed is None:
            assert found(SimulatedFiles(disk), go_on=True) == scenario.after
        else:
            assert found(SimulatedFiles(disk), go_on=True) in {whole.counted[index], whole.counted[index] + 1}


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_the_same_owner_can_commit_again_when_the_fault_is_gone(code: int) -> None:
    start = prepared(LATER)

    def stubborn(files: Files, path: str, counts: object) -> None:
        folder, side, k = resumed(files, path)
        with folder:
            for _ in range(2):
                try:
                    side.truncate(len(side_bytes(k)))
                    return advance(folder, side, k + 1)
                except CheckpointError:
                    side.close()
                    side = folder.side("result")
        raise AssertionError("it never worked again")

    scenario = LATER._replace(act=stubborn, after=3)
    operations = len(run(scenario, start.copy()).files.log)
    # The first operations belong to the lock and to recovery: without these there is no owner.
    for index in range(4, operations):
        disk = start.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CheckpointWarning)
            run(scenario, disk, fail_at=index, error=code)
        assert found(SimulatedFiles(disk)) == 3
        # Nothing stays behind but generations 1 to 3 of the story, whatever their numbers are.
        names = [name for name in disk.tree() if "partial" in name or name.endswith(".msgpack")]
        assert len(names) in (4, 5), names


def test_a_number_under_which_something_failed_is_not_used_again() -> None:
    disk = prepared(LATER)
    files = SimulatedFiles(disk, fail_at=5)
    folder = resumed(files, PATH)[0]
    with pytest.raises(CheckpointError, match="gen-00000003"):
        folder.commit({})
    assert not [name for name in disk.tree() if "gen-00000003" in name]
    assert folder.newest().number == 2
    assert folder.commit({}) == 4


def test_every_call_of_the_system_may_fail_and_no_descriptor_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    path = str(tmp_path / "job")
    for operate in (first, _reopened):
        count = 0
        while True:
            files = FaultyFiles(count)
            failed = False
            try:
                with warnings.catch_warnings():
                    # What cannot be read any more is fallen back from, loudly.
                    warnings.simplefilter("ignore", CheckpointWarning)
                    operate(files, path, lambda _: None)
            except CheckpointError as error:
                failed = True
                # The file layer in use says nothing of a path: what it is about must be added.
                assert str(tmp_path) in str(error) or "gen-" in str(error)
            assert files.handles == set(), files.log[-3:]
            if len(files.log) <= count:
                break
            count += 1
            if operate is first and not failed:
                assert found(FILES, path) == 0
                _remove(path)
            elif operate is first and CheckpointFolder.exists(path):
                _remove(path)
        assert count > 50
        assert found(FILES, path) == 0


def _reopened(files: Files, path: str, counts: object) -> None:
    folder, _, k = resumed(files, path)
    with folder:
        assert k == 0
        assert all(one.ok or "EIO" in str(one.problem) for one in folder.generations())


def _remove(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_the_disk_in_memory_does_what_a_real_one_does(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    path = str(tmp_path / "job")
    with reproducible():
        simulated = prepared(scenario)
        run(scenario, simulated)
    with reproducible():
        lead_up(scenario, FILES, path)
        scenario.act(FILES, path, lambda _: None)
    real = {f"{PATH}/{name}": Path(path, name).read_bytes() for name in os.listdir(path)}
    assert real == {name: data for name, data in simulated.tree().items() if data is not None}


def test_what_is_made_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "job"
    first(FILES, str(path), lambda _: None)
    assert path.stat().st_mode & 0o777 == 0o700
    assert {one.stat().st_mode & 0o777 for one in path.iterdir()} == {0o600}
