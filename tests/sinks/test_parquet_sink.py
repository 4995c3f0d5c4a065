"""Parquet tables as results: the layout, whole or nothing, and going on in the middle of a part."""

from __future__ import annotations

import errno
import hashlib
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
from flowcompute.files import Files, find_drafts, remove_draft
from flowcompute.sinks.parquet import _pyarrow_writer
from tests.support.faulty_files import FaultyFiles

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
