"""Whole jobs on a disk that crashes, fails or loses power at any operation: resumed, they give the same bytes."""

from __future__ import annotations

import errno
import itertools
import random
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import CheckpointWarning, FlowError
from tests.checkpoint.scenarios import LONG
from tests.support.disk import Disk, power_cuts
from tests.support.simulated_files import Crash, SimulatedFiles

DATA = np.random.default_rng(11).standard_normal((3000, 3), dtype=np.float32)
PATHS = ("/data/y.npy", "/data/z.raw")


def roots(files: SimulatedFiles) -> list[fc.Element]:
    """Two passes: a scan and a fold, then a map; files, and results in memory of known and unknown length."""
    x = fc.source(DATA)
    centred = fc.abs(x - x.mean(axis=0))
    sinks = [fc.save(path) for path in PATHS]
    for sink in sinks:
        sink.freeze_fields(files=files)
    return [fc.cumulative_sum(x, axis=0) >> sinks[0], centred >> sinks[1], x[x[:, 0] > 1], x.sum(axis=1)]


def run(files: SimulatedFiles, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, ...]:
    """The job, to its end: the bytes of all its results."""
    monkeypatch.setattr("flowcompute.runtime.checkpoints.checkpoint_coordinator.FILES", files)
    values = fc.resolve(
        *roots(files),
        device="numpy",
        strategy=fc.Strategy(batch_bytes=1 << 14),
        checkpoint="/data/ckpt",
        checkpoint_every=0,
        progress=False,
    )
    tree = files.disk.tree()
    assert values[:2] == PATHS
    return (*(tree[path] or b"" for path in PATHS), *(value.tobytes() for value in values[2:]))


def fresh() -> Disk:
    disk = Disk()
    SimulatedFiles(disk).make_folders("/data")
    return disk


@pytest.fixture(scope="module")
def whole() -> tuple[bytes, ...]:
    with pytest.MonkeyPatch.context() as patch:
        expected = run(SimulatedFiles(fresh()), patch)
    np.testing.assert_array_equal(np.frombuffer(expected[3], "f4"), fc.source(DATA).sum(axis=1).resolve(device="numpy"))
    return expected


def check_resumed(disk: Disk, whole: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The job goes on from what is there, gives what it would have, and leaves nothing else behind."""
    assert run(SimulatedFiles(disk), monkeypatch) == whole
    left = {path.split("/")[2] for path in disk.tree() if path.startswith("/data/")}
    assert left == {"y.npy", "z.raw", "ckpt"}
    # Done, it says so at once.
    assert run(SimulatedFiles(disk), monkeypatch) == whole


def operations(step: int) -> Iterator[int]:
    """Which operation is to be hit; few in CI, but other ones on each side of the steps' ends."""
    return itertools.count(0, step) if not LONG else itertools.count()


@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_a_crash_at_any_operation(moment: str, whole: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for index in operations(17):
        disk = fresh()
        try:
            run(SimulatedFiles(disk, crash_at=index, moment=moment), monkeypatch)  # type: ignore[arg-type]
        except Crash:
            check_resumed(disk, whole, monkeypatch)
        else:
            assert index > 60, "there are more operations than that"
            break


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failure_of_any_operation(code: int, whole: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    failed = 0
    for index in operations(23):
        disk = fresh()
        files = SimulatedFiles(disk, fail_at=index, error=code)
        with warnings.catch_warnings():
            # What only tidies up may fail, and says so.
            warnings.simplefilter("ignore", CheckpointWarning)
            try:
                assert run(files, monkeypatch) == whole
            except FlowError as error:
                failed += 1
                assert errno.errorcode[code] in str(error)
        if len(files.log) <= index:
            break
        check_resumed(disk, whole, monkeypatch)
    assert failed > 2


def test_a_power_cut_at_any_moment(whole: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    files = SimulatedFiles(fresh())
    assert run(files, monkeypatch) == whole
    log, draw = files.log, random.Random(5)
    for index in range(len(log)) if LONG else sorted(draw.sample(range(len(log)), 12)):
        for disk in itertools.islice(power_cuts(fresh(), log[:index], 1 << 6, 8, seed=index), 64 if LONG else 2):
            check_resumed(disk, whole, monkeypatch)


def test_a_crash_while_a_crashed_job_is_resumed(whole: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(7)
    for _ in range(100 if LONG else 4):
        disk = fresh()
        for _ in range(20):
            try:
                run(SimulatedFiles(disk, crash_at=draw.randrange(15, 90)), monkeypatch)
                break
            except Crash:
                continue
        check_resumed(disk, whole, monkeypatch)
