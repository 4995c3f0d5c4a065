"""Parquet tables as results: the layout, whole or nothing, and going on in the middle of a part."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import CheckpointError, DestinationError, SourceError, SpecError
from flowcompute.files import EncodedParts, Files, PartsDraft, Unfinished, find_drafts, remove_draft
from flowcompute.sinks.parquet import _pyarrow_writer
from tests.support.disk import Disk, power_cuts
from tests.support.faulty_files import FaultyFiles
from tests.support.simulated_files import SimulatedFiles

N = 5003
X = np.random.default_rng(21).standard_normal((N, 3)).astype("f4")
DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return found.hexdigest()


def table(x: Any) -> fc.Table:
    return fc.table({"a": x[:, 0] * 2, "sign": x[:, 1] > 0, "pair": x[:, 1:], "n": (x[:, 2] * 9).astype("int16")})


def check(path: Path, x: np.ndarray) -> None:
    """Check by the format's own library."""
    found = pq.read_table(path)
    assert found.column_names == ["a", "sign", "pair", "n"]
    np.testing.assert_array_equal(found["a"].to_numpy(), x[:, 0] * 2, strict=True)
    np.testing.assert_array_equal(found["sign"].to_numpy(), x[:, 1] > 0, strict=True)
    np.testing.assert_array_equal(found["n"].to_numpy(), (x[:, 2] * 9).astype("i2"), strict=True)
    pairs = found["pair"].combine_chunks()
    np.testing.assert_array_equal(pairs.flatten().to_numpy().reshape(-1, 2), x[:, 1:], strict=True)


@settings(max_examples=15, deadline=None)
@given(length=st.integers(0, 60), chunk=st.integers(1, 70), batch=st.sampled_from([1, 100, 1 << 20]))
def test_bytes_depend_on_records_and_chunk_alone(
    tmp_path_factory: pytest.TempPathFactory, length: int, chunk: int, batch: int
) -> None:
    folder, x = tmp_path_factory.mktemp("p"), X[:length]
    fc.run(table(fc.source(x)) >> fc.save(folder / "a.parquet", chunk=chunk), progress=False)
    options: dict[str, Any] = {"strategy": fc.Strategy(batch_bytes=batch), "progress": False}
    fc.run(table(fc.source(x)) >> fc.save(folder / "b.parquet", chunk=chunk), **options)
    assert digest(folder / "a.parquet") == digest(folder / "b.parquet")
    check(folder / "a.parquet", x)
    names = sorted(os.listdir(folder / "a.parquet"))
    assert names == [f"part-{i:010}.parquet" for i in range(max(1, -(-length // chunk)))]
    assert [pq.read_metadata(folder / "a.parquet" / name).num_rows for name in names] == [
        min(chunk, length - at) for at in range(0, max(length, 1), chunk)
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back(tmp_path: Path, dtype: str) -> None:
    x = np.random.default_rng(1).integers(0, 2, (37, 3)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[3] = np.nan, -0.0, np.inf
    fc.run({"x": fc.source(x), "y": fc.source(x[:, 0])} >> fc.save(tmp_path / "x.parquet", chunk=10), progress=False)
    read = fc.open(tmp_path / "x.parquet")
    for name, wanted in (("x", x), ("y", x[:, 0])):
        got = read[name].resolve(progress=False)
        assert (got.dtype, got.tobytes()) == (wanted.dtype, np.ascontiguousarray(wanted).tobytes())


def test_rows_are_encoded_in_groups_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pyarrow_writer, "GROUP_BYTES", 15 * 100)
    fc.run(table(fc.source(X)) >> fc.save(tmp_path / "y.parquet", chunk=1001), progress=False)
    check(tmp_path / "y.parquet", X)
    part = pq.read_metadata(tmp_path / "y.parquet" / "part-0000000000.parquet")
    assert [part.row_group(i).num_rows for i in range(part.num_row_groups)] == [100] * 10 + [1]


def test_the_plan_counts_what_encoding_holds(tmp_path: Path) -> None:
    x = fc.source(np.zeros((10, 64), "f4"))
    lines = dict(fc.plan({"x": x} >> fc.save(tmp_path / "y.parquet")).memory.items)
    assert lines["save (chunks)"] == 4 * (4 << 20)
    with pytest.raises(fc.PlanError, match="chunk"):
        fc.plan({"x": x} >> fc.save(tmp_path / "y.parquet"), memory="4MiB")
    fc.plan({"x": x} >> fc.save(tmp_path / "y.parquet", chunk=1000), memory="4MiB")


def test_one_stream_is_a_table_of_one_column(tmp_path: Path) -> None:
    fc.run(
        fc.source(X[:, 0]).named("x") >> fc.save(tmp_path / "x.parquet"),
        fc.source(X[:, 0]) + 1 >> fc.save(tmp_path / "y.parquet"),
        progress=False,
    )
    assert pq.read_table(tmp_path / "x.parquet").column_names == ["x"]
    assert pq.read_table(tmp_path / "y.parquet").column_names == ["data"]


def test_a_selection_is_written(tmp_path: Path) -> None:
    x = fc.source(X)
    kept = x[x[:, 0] > 0]
    fc.run(table(kept) >> fc.save(tmp_path / "y.parquet", chunk=700), progress=False)
    check(tmp_path / "y.parquet", X[X[:, 0] > 0])


def test_what_is_no_column_is_refused_when_composed(tmp_path: Path) -> None:
    x, path = fc.source(X), tmp_path / "y.parquet"
    for columns, match in (
        ({"a": x.sum(axis=0)}, "no stream"),
        ({"a": x, "b": fc.source(X[:7])}, "different length"),
        ({}, "mapping"),
        ({3: x}, "mapping"),
        ("abc", "mapping"),
    ):
        with pytest.raises(SpecError, match=match):
            fc.table(columns)  # type: ignore[arg-type]
    for columns, match in (
        ({"a": fc.source(X.reshape(N, 3, 1))}, "lists of 1 to"),
        ({"a": x.astype("bfloat16")}, "bfloat16"),
        ({"a\n": x}, "name"),
        ({"a": x[:, :0]}, "lists of 1 to"),
        ({"a": x.sum(axis=0)}, "stream"),
        ([x, x], "name"),
        ({"a": x, "b": fc.source(X[:7])}, "different length"),
    ):
        with pytest.raises(SpecError, match=match):
            columns >> fc.save(path)
    with pytest.raises(SpecError, match="chunk="):
        x >> fc.save(path, chunk=1 << 40)
    with pytest.raises(KeyError, match="no column 'z'"):
        table(x)["z"]
    assert repr(fc.table({"a": x[:, 0]})) == f"Table, {N} records (a: float32)"


def test_without_pyarrow_an_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SpecError, match=r"flowcompute\[parquet\]"):
        fc.source(X) >> fc.save(tmp_path / "y.parquet")


# -- whole or nothing ------------------------------------------------------------------------------------


def write(path: Path, x: np.ndarray, files: Files, *, overwrite: bool = False) -> None:
    sink = table(fc.source(x)) >> fc.save(path, chunk=5, overwrite=overwrite, name="result", files=files)
    rows = sink.input.resolve(progress=False)
    writer = sink.open(sink.spec)
    try:
        for start in range(0, len(x), 4):
            writer.write(rows[start : start + 4], start)
    except BaseException:
        writer.abort()
        raise
    writer.commit()


@pytest.mark.parametrize("old", [False, True], ids=["new", "replaced"])
def test_a_fault_at_any_operation_leaves_the_folder_as_it_was(tmp_path: Path, old: bool) -> None:
    def run(folder: Path, files: FaultyFiles) -> None:
        folder.mkdir()
        if old:
            write(folder / "y.parquet", X[:7], Files())
        write(folder / "y.parquet", X[:13], files, overwrite=old)

    whole = FaultyFiles()
    run(tmp_path / "whole", whole)
    assert not whole.handles
    check(tmp_path / "whole" / "y.parquet", X[:13])
    committed = False
    for k, step in enumerate(whole.log):
        folder, files = tmp_path / str(k), FaultyFiles(fail_at=k, error=errno.ENOSPC)
        committed = committed or whole.log[k - 1].name in {"exchange_folders", "rename_folder"}
        with pytest.raises(DestinationError) as caught:
            run(folder, files)
        assert not files.handles, step
        for word in ("result", str(folder / "y.parquet"), os.strerror(errno.ENOSPC)):
            assert word in str(caught.value), step
        seen = [name for name in os.listdir(folder) if not name.startswith(".")]
        if old:
            check(folder / "y.parquet", X[:13] if committed else X[:7])
        else:
            assert not seen, step


def test_what_is_no_table_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "folder.parquet" / "thesis.tex").write_text("years")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "file.parquet")
    for name in ("folder", "file"):
        for overwrite in (False, True):
            with pytest.raises(DestinationError, match=f"{name}.parquet: it is"):
                write(tmp_path / f"{name}.parquet", X[:3], Files(), overwrite=overwrite)
    assert (tmp_path / "folder.parquet" / "thesis.tex").read_text() == "years"
    write(tmp_path / "y.parquet", X[:3], Files())
    with pytest.raises(DestinationError, match=r"a Parquet table already(.|\n)*overwrite=True"):
        write(tmp_path / "y.parquet", X[:3], Files())
    assert pq.read_table(tmp_path / "file.parquet").num_rows == 1


# -- checkpoints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [(300, 1900), (1000, 1000, 4000), (1, 2, 4100)], ids=str)
def test_a_job_that_is_frozen_goes_on_in_the_middle_of_a_part(tmp_path: Path, stops: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", X)
    columns = table(fc.open(tmp_path / "x.npy"))
    fc.run(columns >> fc.save(tmp_path / "whole.parquet", chunk=1000), progress=False)
    options: dict[str, Any] = {"checkpoint": tmp_path / "kept", "strategy": fc.Strategy(batch_bytes=12 * 97)}
    for stop in stops:

        def at(run: fc.Run, stop: int = stop) -> None:
            if run.progress.items >= stop:
                run.freeze()

        job = columns >> fc.save(tmp_path / "y.parquet", chunk=1000)
        with pytest.raises(fc.RunError):
            job.run(on_batch=at, progress=False, **options)
        assert not (tmp_path / "y.parquet").exists()
    fc.thaw(tmp_path / "kept").resolve(progress=False)
    assert digest(tmp_path / "y.parquet") == digest(tmp_path / "whole.parquet")
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


SIZE = 10
"""Bytes of rows in a part of the simulated ones."""


def doubled(read_into: Any, size: int, write: Any) -> None:
    """Encode as a format that needs all rows at once would."""
    rows = bytearray(size)
    if read_into(memoryview(rows), 0) < size:
        raise OSError(errno.EIO, "rows that were written are missing")
    for at in range(0, 2 * size, 3):
        write(bytes(rows + rows)[at : at + 3], at)


PARTS = EncodedParts(SIZE, ".parquet", doubled)
CONTENT = bytes(range(1, 38))
WHOLE = {f"/d/y/part-{i:010}.parquet": CONTENT[at : at + SIZE] * 2 for i, at in enumerate(range(0, len(CONTENT), SIZE))}


def draft(
    files: Any, unfinished: Unfinished | None = None, *, replaces: bool = False, joined: str | None = None
) -> PartsDraft:
    return PartsDraft(files, "/d/y", PARTS, replaces=replaces, token="t", unfinished=unfinished, joined=joined)


def seen(disk: Disk) -> dict[str, bytes | None]:
    return {path: data for path, data in disk.tree().items() if path.startswith("/d/y") and data is not None}


def new_disk() -> Disk:
    disk = Disk()
    SimulatedFiles(disk).make_folder("/d")
    return disk


@pytest.mark.parametrize("cadence", [1, 2, 5])
@pytest.mark.parametrize("step", [3, 7, 10, 24])
def test_what_a_checkpoint_has_said_survives_any_power_cut(cadence: int, step: int) -> None:
    """Every state that was persisted goes on, until the next one is; whatever was written after it."""
    before = new_disk()
    disk = before.copy()
    files = SimulatedFiles(disk)
    one, kept, written, states = draft(files), 0, 0, []
    marks: list[tuple[int, int]] = []  # operations done, and the bytes that a checkpoint counts from then on
    while written < len(CONTENT):
        part = CONTENT[written : written + step]
        one.write(part, written)
        written += len(part)
        states.append(written)
        if len(states) % cadence == 0:
            one.pin(written)
            one.sync()
            marks.append((len(files.log), written))
            one.unpin(kept)
            kept = written
    path = one.path
    assert path is not None
    for (at, size), (end, _) in zip(marks, [*marks[1:], (len(files.log), 0)], strict=False):
        # The checkpoint of this state counts until the next one is written, which is after its sync.
        for index in (at, (at + end) // 2, end):
            for cut in power_cuts(before, files.log[:index], 8, 6, seed=index):
                again = draft(SimulatedFiles(cut), Unfinished(path, size))
                again.write(CONTENT[size:], size)
                again.complete(len(CONTENT), {})
                again.commit()
                assert seen(cut) == WHOLE, (size, index)


@pytest.mark.parametrize("border", [10, 14])
@pytest.mark.parametrize("step", [3, 10, 24])
def test_what_processes_write_side_by_side_survives_any_power_cut(border: int, step: int) -> None:
    """Each goes on from its last synced byte, or from its first; who began the draft completes it, perhaps twice."""
    before = new_disk()
    begun = draft(SimulatedFiles(before))
    begun.sync()
    path = begun.path
    assert path is not None
    ranges = ((0, border), (border, len(CONTENT)))
    disk = before.copy()
    files = SimulatedFiles(disk)
    marks: list[tuple[int, list[int]]] = [(0, [0, border])]  # operations done, and the bytes that count from then on
    for number, (start, stop) in reversed([*enumerate(ranges)]):
        one = draft(files, joined=path)
        for at in range(start, stop, step):
            one.write(CONTENT[at : min(at + step, stop)], at)
            one.sync()
            kept = marks[-1][1].copy()
            kept[number] = min(at + step, stop)
            marks.append((len(files.log), kept))
        one.suspend()
    last = draft(files, joined=path)
    last.complete(len(CONTENT), {})
    marks.append((len(files.log), marks[-1][1]))
    for (at, kept), (end, _) in itertools.pairwise(marks):
        for index in (at, (at + end) // 2, end):
            for cut in power_cuts(before, files.log[:index], 6, 4, seed=index):
                for begin, (_, stop) in zip(kept, ranges, strict=True):
                    again = draft(SimulatedFiles(cut), joined=path)
                    if begin < stop:
                        again.write(CONTENT[begin:stop], begin)
                    again.suspend()
                final = draft(SimulatedFiles(cut), joined=path)
                final.complete(len(CONTENT), {})
                final.commit()
                assert seen(cut) == WHOLE, (index, kept)


def test_a_part_is_encoded_by_who_has_written_all_of_it(tmp_path: Path) -> None:
    begun = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False)
    path = begun.path
    assert path is not None
    for start, stop in ((0, 14), (14, len(CONTENT))):
        one = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False, joined=path)
        one.write(CONTENT[start:stop], start)
        one.suspend()
    left = sorted(os.listdir(path))
    assert [name for name in left if name.startswith(".")] == [".rows-1", f".rows-{len(CONTENT) // 10}"]
    assert "part-0000000001.parquet" not in left
    assert {"part-0000000000.parquet", "part-0000000002.parquet"} <= {*left}
    begun.complete(len(CONTENT), {})
    begun.commit()
    assert {path.name: path.read_bytes() for path in (tmp_path / "y").iterdir()} == {
        os.path.basename(name): data for name, data in WHOLE.items()
    }


def test_rows_that_nobody_has_written_are_noticed(tmp_path: Path) -> None:
    begun = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False)
    begun.write(CONTENT[:14], 0)
    for size in (19, 20, 31):
        with pytest.raises(OSError, match="missing"):
            begun.complete(size, {})
    begun.discard()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("old", [None, b"older content"], ids=["new", "replaced"])
def test_a_power_cut_leaves_the_old_or_the_new_table(old: bytes | None) -> None:
    before = new_disk()
    if old is not None:
        first = draft(SimulatedFiles(before))
        first.write(old, 0)
        first.complete(len(old), {})
        first.commit()
    former, disk = seen(before), before.copy()
    files = SimulatedFiles(disk)
    one = draft(files, replaces=old is not None)
    one.write(CONTENT, 0)
    one.complete(len(CONTENT), {})
    one.commit()
    outcomes = set()
    for index in range(len(files.log), -1, -1):
        for cut in power_cuts(before, files.log[:index], 64, 20, seed=index):
            found = seen(cut)
            assert found in (WHOLE, former), files.log[index - 1]
            outcomes.add(found == WHOLE)
            if index == len(files.log):
                assert found == WHOLE
    assert outcomes == {True, False}


def test_a_draft_that_was_changed_is_refused(tmp_path: Path) -> None:
    def begun() -> tuple[PartsDraft, str]:
        one = PartsDraft(Files(), str(tmp_path / "y"), PARTS, replaces=False, token="t")
        one.write(CONTENT[:24], 0)
        path = one.path
        assert path is not None
        one.suspend()
        return one, path

    _, path = begun()
    assert sorted(os.listdir(path)) == [".rows-2", "part-0000000000.parquet", "part-0000000001.parquet"]
    damages = (("part-0000000001.parquet", "missing"), *((".rows-2", how) for how in ("missing", "short", "link")))
    for name, damage in damages:
        _, path = begun()
        one = os.path.join(path, name)
        os.remove(one)
        if damage == "short":
            Path(one).write_bytes(b"1")
        elif damage == "link":
            Path(one).symlink_to(tmp_path / "other")
        files = FaultyFiles()
        with pytest.raises(OSError):
            PartsDraft(files, str(tmp_path / "y"), PARTS, replaces=False, unfinished=Unfinished(path, 24))
        assert not files.handles


def test_folders_of_dead_processes_are_found_and_removed(tmp_path: Path) -> None:
    sink = fc.source(X) >> fc.save(tmp_path / "y.parquet", chunk=4)
    writer = sink.open(sink.spec)
    writer.write(np.zeros((9, 12), "u1"), 0)
    (used,) = find_drafts(str(tmp_path))
    assert used.fate == "in use"
    assert used.size > 2 * 48
    writer.suspend()
    (left,) = find_drafts(str(tmp_path))
    assert remove_draft(left)
    assert not os.listdir(tmp_path)


def test_a_checkpoint_is_verified_whatever_compression_saves(tmp_path: Path) -> None:
    """Rows of zeros take fewer bytes as parts than as rows."""
    np.save(tmp_path / "x.npy", np.zeros((100_000, 4), "f4"))
    job = fc.open(tmp_path / "x.npy") >> fc.save(tmp_path / "y.parquet", chunk=3000)

    def at(run: fc.Run) -> None:
        if run.progress.items >= 50_000:
            run.freeze()

    strategy = fc.Strategy(batch_bytes=1 << 16)
    with pytest.raises(fc.RunError):
        job.run(checkpoint=tmp_path / "kept", on_batch=at, strategy=strategy, progress=False)
    subprocess.run([sys.executable, "-m", "flowcompute", "checkpoint", "verify", tmp_path / "kept"], check=True)
    fc.thaw(tmp_path / "kept").resolve(progress=False)
    assert pq.read_table(tmp_path / "y.parquet").num_rows == 100_000


def test_a_state_that_names_another_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    sink = fc.source(X) >> fc.save(tmp_path / "y.parquet")
    place = type("Place", (), {"token": "0" * 16})()
    with pytest.raises(CheckpointError, match="none of its own"):
        sink.reopen(sink.spec, place, {"written": 0, "bytes": 0, "draft": str(tmp_path / "other")})


# -- read again ------------------------------------------------------------------------------------------


def test_several_files_are_one_table(tmp_path: Path) -> None:
    for i, (a, b) in enumerate(((0, 11), (11, 11), (11, 4000), (4000, N))):
        pq.write_table(pa.table({"x": X[a:b, 0], "n": np.arange(a, b)}), tmp_path / f"{i}.parquet", row_group_size=999)
    (tmp_path / "all.parquet").mkdir()
    for one in tmp_path.glob("?.parquet"):
        os.link(one, tmp_path / "all.parquet" / one.name)
    (tmp_path / "all.parquet" / "_metadata").write_text("not looked at")
    (tmp_path / "all.parquet" / ".hidden.parquet").write_text("not looked at")
    names = [tmp_path / f"{i}.parquet" for i in range(4)]
    for path in (names, tmp_path / "?.parquet", tmp_path / "all.parquet"):
        opened = fc.open(path)
        assert (opened.columns, opened.length) == (("x", "n"), N)
        for batch in (1 << 20, 999):
            options: dict[str, Any] = {"progress": False, "strategy": fc.Strategy(batch_bytes=batch)}
            np.testing.assert_array_equal(opened["x"].resolve(**options), X[:, 0], strict=True)
        np.testing.assert_array_equal(opened["n"][4321:].resolve(progress=False), np.arange(4321, N))
    pq.write_table(pa.table({"x": X[:3, 0], "m": np.arange(3)}), tmp_path / "5.parquet")
    with pytest.raises(SourceError, match="columns differ"):
        fc.open(tmp_path / "?.parquet")
    (tmp_path / "empty.parquet").mkdir()
    with pytest.raises(SourceError, match=r"folder without \.parquet files"):
        fc.open(tmp_path / "empty.parquet")


def test_a_part_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    fc.run({"x": fc.source(X)} >> fc.save(tmp_path / "y.parquet", chunk=1000), progress=False)
    x = fc.open(tmp_path / "y.parquet")["x"]
    part = tmp_path / "y.parquet" / "part-0000000003.parquet"
    os.utime(part, ns=(1, 1))
    with pytest.raises(SourceError, match=r"part-0000000003.parquet(.|\n)*changed"):
        x.sum(axis=0).resolve(progress=False)
