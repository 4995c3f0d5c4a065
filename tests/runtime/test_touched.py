"""Sources whose time of change is another one, and whose contents may be the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.fields import Fields
from flowcompute.checkpoint.job.fingerprint import content_blocks, contents_digest, read_state
from flowcompute.checkpoint.job.parts import Describing
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.cli.command import main

DATA = np.arange(120_000, dtype="f4").reshape(30_000, 4)
OPTIONS: dict[str, Any] = {"device": "numpy", "progress": False, "strategy": fc.Strategy(batch_bytes=1 << 15)}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x.npy", "part0.npy", "part1.npy"):
        np.save(name, DATA)
    DATA.tofile("x.raw")


SOURCES: dict[str, tuple[str, Callable[[], fc.Element]]] = {
    "npy": ("x.npy", lambda: fc.open("x.npy")),
    "raw": ("x.raw", lambda: fc.open("x.raw", dtype="f4", shape=(4,))),
    "several": ("part1.npy", lambda: fc.open("part*.npy")),
}


def freeze(make: Callable[[], fc.Element]) -> None:
    with pytest.raises(fc.RunError, match="was frozen"):
        fc.run(make().sum(axis=0), checkpoint="kept", on_batch=lambda run: run.freeze(), **OPTIONS)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("how", ["run", "thaw", "command"])
def test_a_touched_source_goes_on_where_that_is_said(name: str, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, make = SOURCES[name]
    freeze(make)
    os.utime(path, ns=(0, 0))
    with pytest.raises(fc.CheckpointError, match="accept_touched=True") as caught:
        fc.run(make().sum(axis=0), checkpoint="kept", **OPTIONS)
    assert str(caught.value).count("time of change") == 1
    with pytest.raises(fc.CheckpointError, match="accept_touched=True"):
        fc.thaw("kept").resolve(**OPTIONS)
    expected = make().sum(axis=0).resolve(**OPTIONS)
    if how == "run":
        found = fc.run(make().sum(axis=0), checkpoint="kept", accept_touched=True, **OPTIONS).value
        np.testing.assert_array_equal(found, expected)
    elif how == "thaw":
        np.testing.assert_array_equal(fc.thaw("kept").resolve(accept_touched=True, **OPTIONS), expected)
        assert fc.thaw("kept").elements(accept_touched=True)
    else:
        assert main(["resume", "kept", "--accept-touched", "--no-progress", "--device", "numpy"]) == 0
        assert str(expected) in capsys.readouterr().out


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("place", [0.3, 0.5, 0.77])
def test_a_source_with_other_contents_is_refused_wherever_they_are(name: str, place: float) -> None:
    path, make = SOURCES[name]
    freeze(make)
    # Between the blocks of the sample, which do not see it.
    at = int(os.path.getsize(path) * place) + 9001
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(1)
        file.seek(at)
        file.write(bytes([old[0] ^ 1]))
    for resume in (
        lambda: fc.run(make().sum(axis=0), checkpoint="kept", accept_touched=True, **OPTIONS),
        lambda: fc.thaw("kept").resolve(accept_touched=True, **OPTIONS),
    ):
        with pytest.raises(fc.CheckpointError, match="its content is another"):
            resume()


def test_a_larger_source_is_not_touched_but_changed() -> None:
    freeze(SOURCES["raw"][1])
    with open("x.raw", "ab") as file:
        file.write(bytes(16))
    with pytest.raises(fc.CheckpointError, match="it had 480000 bytes and has 480016"):
        fc.thaw("kept").resolve(accept_touched=True, **OPTIONS)


def test_a_checkpoint_without_contents_is_read_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("flowcompute.checkpoint.job.describe.Describing", lambda put, **_: _without(put))
        freeze(SOURCES["npy"][1])
    with CheckpointFolder.peek("kept") as folder:
        assert "contents" not in folder.job()["graph"]["nodes"][0]["file"]
    assert fc.thaw("kept").elements()
    os.utime("x.npy", ns=(0, 0))
    with pytest.raises(fc.CheckpointError, match="no more of it was kept"):
        fc.thaw("kept").resolve(accept_touched=True, **OPTIONS)


def _without(put: Any) -> Any:
    return Describing(put)


@pytest.mark.parametrize("kept", ["", "7", "1-" + "0" * 64, "257-" + "0" * 64, "256-" + "0" * 63, "256-" + "g" * 64, 5])
def test_a_digest_that_is_none_is_refused(kept: Any) -> None:
    with pytest.raises(fc.CheckpointError, match="contents"):
        read_state(Fields({"path": "x", "size": 1, "mtime_ns": 0, "sample": "", "contents": kept}, "a file"))


def test_digests_are_the_same_for_ever(tmp_path: Path) -> None:
    """They are compared with those of earlier versions."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
        file.write(b"first")
        file.seek(-4, os.SEEK_END)
        file.write(b"last")
    assert contents_digest("x.raw", 256) == f"256-{hashlib.sha256(DATA.tobytes()).hexdigest()}"
    ends = b"first" + bytes((1 << 18) - 5), bytes((1 << 18) - 4) + b"last"
    for count in (2, 16, 256):
        seen = hashlib.sha256(ends[0] + bytes((count - 2) << 18) + ends[1])
        assert contents_digest(str(path), count) == f"{count}-{seen.hexdigest()}"


def test_many_files_are_looked_at_less_each() -> None:
    assert [content_blocks(files) for files in (1, 4, 5, 100, 100_000)] == [256, 256, 204, 10, 2]


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_what_is_no_answer_is_refused(value: Any) -> None:
    with pytest.raises(fc.PlanError, match="accept_touched"):
        fc.run(fc.open("x.npy").sum(), accept_touched=value, **OPTIONS)
