"""A side file is written to by one thread while another makes it durable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.errors import CheckpointError
from tests.support.faulty_files import FaultyFiles


class Meanwhile(FaultyFiles):
    """Does something in the middle of each fsync."""

    def __init__(self) -> None:
        super().__init__()
        self.during: Callable[[], object] = lambda: None

    def fsync(self, handle: int) -> None:
        during, self.during = self.during, lambda: None
        during()
        super().fsync(handle)


def test_what_is_written_during_an_fsync_asks_for_another(tmp_path: Path) -> None:
    files = Meanwhile()
    with CheckpointFolder.create(str(tmp_path / "ckpt"), files) as folder:
        side = folder.side("out")
        side.write_at(b"first", 0)
        files.during = lambda: side.write_at(b"second", 5)
        side.fsync()
        done = [step.name for step in files.log].count("fsync")
        side.fsync()
        side.fsync()
        assert [step.name for step in files.log].count("fsync") == done + 1


def test_after_an_fsync_that_failed_nothing_is_written(tmp_path: Path) -> None:
    files = Meanwhile()

    def fail() -> None:
        raise OSError(5, "Input/output error")

    with CheckpointFolder.create(str(tmp_path / "ckpt"), files) as folder:
        side = folder.side("out")
        side.write_at(b"first", 0)
        files.during = fail
        with pytest.raises(CheckpointError, match="EIO"):
            side.fsync()
        with pytest.raises(CheckpointError, match="cannot be trusted"):
            side.write_at(b"more", 5)
