"""Real processes on a real disk, killed while they commit: also while they recover from the kill before."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
from pathlib import Path

from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.files.file_layer import FILES, Files
from tests.checkpoint.scenarios import LONG, advance, first, found, resumed

KILLS = 1000 if LONG else 4


class Telling(Files):
    """Says through a pipe that an operation is about to be done, and goes on at once."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def create(self, path: str, mode: int = 0o600) -> int:
        os.write(self.pipe, b".")
        return super().create(path, mode)

    def _write_some(self, handle: int, data: memoryview, offset: int) -> int:
        os.write(self.pipe, b".")
        # In pieces, so that a write can be torn.
        return super()._write_some(handle, data[:50], offset)

    def fsync(self, handle: int) -> None:
        os.write(self.pipe, b".")
        super().fsync(handle)

    def replace(self, path: str, target: str) -> None:
        os.write(self.pipe, b".")
        super().replace(path, target)

    def remove(self, path: str) -> None:
        os.write(self.pipe, b".")
        super().remove(path)


def work(path: str, pipe: int) -> None:
    files = Telling(pipe)
    if not CheckpointFolder.exists(path):
        first(files, path, lambda _: None)
    folder, side, k = resumed(files, path)
    with folder:
        while True:
            os.write(pipe, b" %d\n" % k)
            k += 1
            advance(folder, side, k)


def test_killed_processes_leave_what_they_had_committed(tmp_path: Path) -> None:
    seed = 20261121
    generator = random.Random(seed)
    path = str(tmp_path / "job")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.checkpoint.test_kills"])
    committed = -1
    for kill in range(KILLS):
        reading, writing = os.pipe()
        with open(reading, "rb", buffering=0) as heard:
            process = context.Process(target=_started, args=(path, multiprocessing.reduction.DupFd(writing)))
            process.start()
            os.close(writing)
            said = b""
            wanted = generator.randrange(1, 100)
            while len(said) < wanted:
                more = heard.read(wanted - len(said))
                assert more, f"seed {seed}, kill {kill}: the process ended by itself"
                said += more
            process.kill()
            process.join()
            said += heard.readall()
        committed = max([committed, *map(int, re.findall(rb" (\d+)\n", said))])
        if kill % 2:
            # Every other time the next process recovers, and is killed too, perhaps while it does.
            continue
        k = found(FILES, path)
        assert k in (committed, committed + 1), f"seed {seed}, kill {kill}"
        committed = k
    assert committed > 0


def _started(path: str, pipe: multiprocessing.reduction.DupFd) -> None:
    work(path, pipe.detach())
