"""Trainers that are killed while they are saved: what is there is whole, of the step before or of this one."""

from __future__ import annotations

import os
import signal
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.files.file_layer import Files
from tests.runtime.kills import processes

X = np.random.default_rng(4).standard_normal((40, 6), dtype=np.float32)
STEPS, KILLED_AT = 4, 2
FILE = "trainer.safetensors"
CHANGING = ("create_temporary", "_write_some", "truncate", "fsync", "replace", "fsync_folder")
"""Functions of the file layer by which a file is written, and gets its name."""


class Kill:
    """Kills its own process at one operation of the file layer.

    Args:
        at: which one, from 0.
        after: whether it is done before.
    """

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.done = at, after, 0

    def watching(self, name: str) -> AbstractContextManager[object]:
        original = getattr(Files, name)

        def operation(files: Files, *of: object, **named: object) -> object:
            here, self.done = self.done == self.at, self.done + 1
            if here and name == "_write_some" and self.after:
                # Half of it.
                handle, data, offset = of
                original(files, handle, data[: len(data) // 2], offset)  # type: ignore[index, arg-type]
            elif here and self.after:
                original(files, *of, **named)
            if here:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(files, *of, **named)

        return mock.patch.object(Files, name, operation)


def train(folder: str, kill_at: int, after: bool) -> None:
    """Take the steps that are left, each of them saved; one save is killed at an operation, if that is not negative."""
    w, b = (fc.parameter(np.full(shape, 0.1, "f4"), name=name) for name, shape in (("w", (6, 3)), ("b", (3,))))
    with fc.train.Trainer([w, b], fc.train.adam(0.05), device="numpy") as trainer:
        if Path(folder, FILE).exists():
            trainer.load(folder)
        while trainer.steps < STEPS:
            records = fc.source(X[trainer.steps * 10 :][:10])
            trainer.step(fc.nn.dropout((fc.tanh(records @ w + b) ** 2.0), 0.25, seed=1).mean())
            with ExitStack() as patches:
                kill = Kill(kill_at, after=after)
                for name in CHANGING if trainer.steps == KILLED_AT else ():
                    patches.enter_context(kill.watching(name))
                trainer.save(folder)


def trained(folder: Path, kill_at: int = -1, *, after: bool = False) -> int | None:
    process = processes().Process(target=train, args=(str(folder), kill_at, after))
    process.start()
    process.join()
    code: int | None = process.exitcode
    return code


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_trainer_killed_in_the_middle_of_a_save_goes_on_to_the_same_bytes(tmp_path: Path, after: bool) -> None:
    assert trained(tmp_path / "whole") == 0
    whole, at, steps = (tmp_path / "whole" / FILE).read_bytes(), 0, set[int]()
    while True:
        folder = tmp_path / str(at)
        code = trained(folder, at, after=after)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        steps.add(int(fc.weights(folder / FILE)["optimizer.steps"].resolve(device="numpy")))
        assert trained(folder) == 0
        assert (folder / FILE).read_bytes() == whole
        assert os.listdir(folder) == [FILE], f"operation {at} has left something"
        at += 1
    assert at > 4, "a file is created, written, synced, renamed, and its folder synced"
    # At a rename the step counts; the step before it is there until then.
    assert steps == {KILLED_AT - 1, KILLED_AT}
