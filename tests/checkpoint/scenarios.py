"""What is done to a checkpoint in the tests of crashes, power cuts and faults, and what must be found afterwards."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from unittest import mock

import numpy as np

from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.side_files import SideFile
from flowcompute.files.file_layer import Files
from tests.support.disk import Disk
from tests.support.simulated_files import Crash, SimulatedFiles

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "full"
PATH = "/data/job"


class Scenario(NamedTuple):
    """Something that is done to a checkpoint.

    Attributes:
        name: for people.
        before: how many generations are committed before it.
        act: does it; calls its last argument with the generation that counts whenever one does.
        after: the generation that counts in the end.
    """

    name: str
    before: int
    act: Callable[[Files, str, Callable[[int], None]], None]
    after: int


def side_bytes(k: int) -> bytes:
    return b"".join(b"<part %d>" % one for one in range(k + 1))


def array_of(k: int) -> np.ndarray:
    return np.arange(k, k + 3, dtype=np.float32)


def blob_array(k: int) -> np.ndarray:
    # Two generations share a blob, and in the end it is one that nobody needs any more.
    return np.full(4, k // 2, dtype=np.int16)


def advance(folder: CheckpointFolder, side: SideFile, k: int) -> None:
    """Commit generation k of the story."""
    side.write_at(side_bytes(k)[len(side_bytes(k - 1)) :], side.size)
    blob = folder.put_blob(blob_array(k))
    folder.commit({"k": k, "array": array_of(k), "blob": blob, "side": side.mark(), "text": "ä" * k})


def first(files: Files, path: str, counts: Callable[[int], None]) -> None:
    with CheckpointFolder.create(path, files) as folder:
        folder.set_job({"weights": folder.put_blob(np.arange(3))})
        advance(folder, folder.side("result"), 0)
        folder.publish()
        counts(0)


def resumed(files: Files, path: str) -> tuple[CheckpointFolder, SideFile, int]:
    """Open a checkpoint as a job that is resumed does; compares all that it holds with what belongs there."""
    folder = CheckpointFolder.open(path, files)
    try:
        return folder, *_compared(folder)
    except BaseException:
        folder.close()
        raise


def _compared(folder: CheckpointFolder) -> tuple[SideFile, int]:
    body = folder.newest().body
    k = body["k"]
    assert list(body) == ["k", "array", "blob", "side", "text"]
    assert body["text"] == "ä" * k
    assert body["array"].dtype == np.float32
    assert body["array"].tobytes() == array_of(k).tobytes()
    assert folder.get_blob(body["blob"]).tobytes() == blob_array(k).tobytes()
    assert folder.get_blob(folder.job()["weights"]).tolist() == [0, 1, 2]
    side = folder.side("result")
    side.restore(body["side"])
    content = bytearray(side.size + 1)
    assert side.read_into(memoryview(content), 0) == side.size
    assert content[: side.size] == side_bytes(k)
    return side, k


def _later(files: Files, path: str, counts: Callable[[int], None]) -> None:
    folder, side, k = resumed(files, path)
    with folder:
        # Whoever resumes acts on what was found: it must not be lost any more.
        counts(k)
        for one in (k + 1, k + 2):
            advance(folder, side, one)
            counts(one)


FIRST = Scenario("first", 0, first, 0)
SECOND = Scenario("second", 1, _later, 2)
# With three generations there each commit removes one, and one of these commits a blob.
LATER = Scenario("later", 3, _later, 4)
# What happens in the second happens in the later one too.
SCENARIOS = [FIRST, SECOND, LATER] if LONG else [FIRST, LATER]


def prepared(scenario: Scenario) -> Disk:
    """The disk before a scenario, all of it durable."""
    disk = Disk()
    files = SimulatedFiles(disk)
    files.make_folders(os.path.dirname(PATH))
    lead_up(scenario, files, PATH)
    return disk


def lead_up(scenario: Scenario, files: Files, path: str) -> None:
    """Make what is there before a scenario."""
    if scenario.before:
        first(files, path, lambda _: None)
    for _ in range(scenario.before - 1):
        folder, side, k = resumed(files, path)
        with folder:
            advance(folder, side, k + 1)


def committed(scenario: Scenario) -> int:
    """The generation that counts before a scenario, -1 if there is none."""
    return scenario.before - 1


class Run(NamedTuple):
    """A scenario that was run: with what was done, and the generation that counted after each operation."""

    files: SimulatedFiles
    counted: list[int]


def run(scenario: Scenario, disk: Disk, **options: object) -> Run:
    """Run a scenario until its end or until it crashes."""
    files = SimulatedFiles(disk, **options)  # type: ignore[arg-type]
    news: list[tuple[int, int]] = []
    with suppress(Crash):
        scenario.act(files, PATH, lambda k: news.append((len(files.log), k)))
    counted = [committed(scenario)] * (len(files.log) + 1)
    for since, k in news:
        counted[since:] = [k] * (len(counted) - since)
    return Run(files, counted)


def found(files: Files, path: str = PATH, *, go_on: bool = False) -> int:
    """The generation that a checkpoint holds, -1 if there is none; whatever is not as it should be is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if not CheckpointFolder.exists(path, files):
            if go_on:
                first(files, path, lambda _: None)
                assert found(files, path) == 0
            return -1
        folder, side, k = resumed(files, path)
        with folder:
            if go_on:
                advance(folder, side, k + 1)
        if go_on:
            assert found(files, path) == k + 1
        return k


@contextmanager
def reproducible() -> Iterator[None]:
    """Let what is random or told by the clock be the same in each run."""
    numbers = itertools.count()
    with (
        mock.patch("secrets.token_hex", lambda size=32: f"{next(numbers):0{2 * size}x}"),
        mock.patch("time.time", return_value=1_700_000_000.5),
    ):
        yield
