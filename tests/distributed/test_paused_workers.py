"""Workers that pause, are replaced, and go on: they write nothing more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.store import unpack
from flowcompute.distributed import ShardedJob, ShardMessages, ShardStart, ShardState, answer
from flowcompute.distributed.kept import ShardFolder
from flowcompute.distributed.shard_message import KeptShard, digest_of
from flowcompute.distributed.shard_reading import ShardReading
from tests.distributed.test_shards import bits, numbers, planned
from tests.support.slow import slow_but

Pause = Callable[[bytes, Callable[[], bytes]], bytes]
"""`pause(request, replace)` answers a request, and pauses while `replace` does; gives what it says after that."""

SHARD = 0
"""The shard whose worker pauses."""


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes of all files, and when each was last written to."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def check_pause(folder: Path, pause: Pause) -> None:
    """Pause a worker of a job, replace it, let it go on, and compare all that there is."""
    np.save(folder / "x.npy", numbers(20_000))
    x = fc.open(folder / "x.npy")
    for name in ("one", "many", "kept"):
        (folder / name).mkdir()

    def job(out: str) -> tuple[fc.Element, ...]:
        return (
            x * 2 >> fc.save(folder / out / "d.npy"),
            x >> fc.save(folder / out / "z.zarr", chunk=3000),
            x.std(axis=0),
        )

    made = planned(*job("many"), memory=1 << 18)
    messages = ShardMessages(made)

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        requests = [
            messages.request(index, start, KeptShard(str(folder / "kept" / start.name), digest_of(index, start), 0.0))
            for start in starts
        ]
        after: list[dict[str, tuple[bytes, int]]] = []
        said: list[bytes] = []

        def replace() -> bytes:
            said.append(answer(requests[SHARD]))
            after.append(everything(folder))
            return said[0]

        paused = unpack(pause(requests[SHARD], replace))
        assert "another worker has taken it over" in paused["error"]
        assert [everything(folder)] == after
        others = [answer(request) for request in (*requests[:SHARD], *requests[SHARD + 1 :])]
        return messages.states([*said, *others])

    values = ShardedJob(made, 3).run(run_shards)
    wanted = fc.run(*job("one"), device="numpy", progress=False).values
    assert bits(values[2:]) == bits(wanted[2:])
    found = [{name: data for name, (data, _) in everything(folder / out).items()} for out in ("many", "one")]
    assert found[0] == found[1]


WAITED = (ShardReading, "_wait", 3)
ASKED = [(ShardFolder, "check", at) for at in (1, 2, 3, 9)]


@pytest.mark.parametrize("moment", slow_but([WAITED, ASKED[-1]], [WAITED, *ASKED]))
def test_a_worker_that_is_paused_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: tuple[type, str, int]
) -> None:
    """Before a batch, a write, a state that it keeps, and its end; and when it has waited for what it was writing."""
    (owner, name, at), calls = moment, 0
    own = getattr(owner, name)

    def pause(request: bytes, replace: Callable[[], bytes]) -> bytes:
        def pausing(self: object) -> None:
            nonlocal calls
            calls += 1
            mine = calls
            if owner is ShardReading:
                own(self)
            if mine == at:
                replace()
            if owner is ShardFolder:
                own(self)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, pausing)
            return answer(request)

    check_pause(tmp_path, pause)


@pytest.mark.slow
def test_a_process_that_is_stopped_and_continued_writes_nothing(tmp_path: Path) -> None:
    """SIGSTOP until it is replaced, then SIGCONT."""

    def pause(request: bytes, replace: Callable[[], bytes]) -> bytes:
        (tmp_path / "request").write_bytes(request)
        command = [sys.executable, "-m", "tests.distributed.paused_worker", str(tmp_path / "request"), "4"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            _, status = os.waitpid(worker.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), status
            replace()
            worker.send_signal(signal.SIGCONT)
            said, _ = worker.communicate()
        return said

    check_pause(tmp_path, pause)
