"""Columns of Parquet and Arrow files as streams, beside pyarrow; nulls, types, damage."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.cli import main
from flowcompute.errors import PlanError, SourceError, SpecError

N = 20_011
X = np.random.default_rng(3).standard_normal((N, 3)).astype("f4")
COLUMNS = {"a": X[:, 0], "b": X[:, 1].astype("f8"), "c": (X[:, 2] * 9).astype("i2"), "d": X[:, 0] > 0}


def parquet(path: Path, table: Any, **options: Any) -> Path:
    pq.write_table(table, path, **{"row_group_size": 6007, **options})
    return path


def read_or_refused(path: Path) -> None:
    """Read all columns of a few records, or get an error of ours."""
    with contextlib.suppress(SourceError, SpecError, PlanError):
        table = fc.open(path)
        for name in table:
            if table.length < 1000:
                table[name].resolve(progress=False)


def frozen(job: Any, target: Path, kept: Path) -> None:
    with pytest.raises(fc.RunError):
        (job >> fc.save(target)).run(
            checkpoint=kept, progress=False, strategy=fc.Strategy(batch_bytes=3000),
            on_batch=lambda run: run.progress.items > 9000 and run.freeze(),
        )  # fmt: skip


def parts(folder: Path) -> list[Path]:
    folder.mkdir()
    bounds = zip((0, 5000, 9500), (5000, 9500, N), strict=True)
    columns = [{name: column[begin:end] for name, column in COLUMNS.items()} for begin, end in bounds]
    return [parquet(folder / f"part-{i}.parquet", pa.table(one)) for i, one in enumerate(columns)]


def arrow(path: Path, table: Any, chunk: int = 4001, **options: Any) -> Path:
    said = pa.ipc.IpcWriteOptions(**options)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=said) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return path


FILES = {
    "parquet": lambda folder, table: parquet(folder / "x.parquet", table),
    "zstd": lambda folder, table: parquet(folder / "x.parquet", table, compression="zstd", data_page_size=1000),
    "plain": lambda folder, table: parquet(folder / "x.parquet", table, compression="none", use_dictionary=False),
    "arrow": lambda folder, table: arrow(folder / "x.arrow", table),
    "arrow, lz4": lambda folder, table: arrow(folder / "x.feather", table, compression="lz4"),
}


@pytest.mark.parametrize("kind", FILES)
def test_columns_are_read_bit_by_bit(tmp_path: Path, kind: str) -> None:
    table = fc.open(FILES[kind](tmp_path, pa.table(COLUMNS)))
    assert (table.columns, len(table), table.length) == (("a", "b", "c", "d"), 4, N)
    assert "a: float" in repr(table)
    for name, wanted in COLUMNS.items():
        for batch in (1 << 20, 999):
            got = table[name].resolve(progress=False, strategy=fc.Strategy(batch_bytes=batch))
            np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("kind", FILES)
def test_columns_advance_together(tmp_path: Path, kind: str) -> None:
    table = fc.open(FILES[kind](tmp_path, pa.table(COLUMNS)))
    got = fc.run((table["a"] * 2 + table["b"].astype("f4")).sum(), memory="8MiB", progress=False).value
    wanted = fc.run((fc.source(COLUMNS["a"]) * 2 + fc.source(COLUMNS["b"]).astype("f4")).sum(), progress=False).value
    assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()


@settings(max_examples=30, deadline=None)
@given(records=st.integers(0, 60), group=st.integers(1, 70), item=st.integers(0, 3), seed=st.integers(0, 9))
def test_any_groups_and_items(
    tmp_path_factory: pytest.TempPathFactory, records: int, group: int, item: int, seed: int
) -> None:
    array = np.random.default_rng(seed).integers(-9, 9, (records, item) if item else records).astype("i4")
    flat = pa.array(array.reshape(-1))
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(flat, item) if item else flat})
    folder = tmp_path_factory.mktemp("t")
    for path in (parquet(folder / "x.parquet", table, row_group_size=group), arrow(folder / "x.arrow", table, group)):
        np.testing.assert_array_equal(fc.open(path)["x"].resolve(progress=False), array, strict=True)


@pytest.mark.parametrize("kind", FILES)
def test_nulls_are_refused_or_filled(tmp_path: Path, kind: str) -> None:
    values = [None if i % 7 == 3 else float(i) for i in range(9000)]
    path = FILES[kind](tmp_path, pa.table({"x": pa.array(values, pa.float32()), "n": np.arange(9000)}))
    with pytest.raises(SourceError, match=r"column 'x'(.|\n)*nulls(.|\n)*fill=math\.nan") as caught:
        fc.open(path)["x"].resolve(progress=False)
    assert caught.value.records is not None
    wanted = np.array([-1.5 if value is None else value for value in values], "f4")
    for fill in (-1.5, {"x": -1.5}):
        np.testing.assert_array_equal(fc.open(path, fill=fill)["x"].resolve(progress=False), wanted)
    with pytest.raises(SourceError, match="nulls"):
        fc.open(path, fill={"n": 3})["x"].resolve(progress=False)
    for bad in ("0", [1], True):
        with pytest.raises(SpecError, match="fill="):
            fc.open(path, fill=bad)["x"]
    with pytest.raises(SpecError, match="fill="):
        fc.open(path, fill=1.5)["n"]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(
    ("dtype", "fill"), [("i1", 128), ("u2", -1), ("i8", 2**70), ("f2", 1e5), ("f4", -1e300), ("f8", 10**320)]
)
def test_numbers_that_a_column_cannot_hold_fill_no_nulls(tmp_path: Path, kind: str, dtype: str, fill: float) -> None:
    column = pa.array(np.zeros(3, dtype), mask=np.array([False, True, False]))
    path = FILES[kind](tmp_path, pa.table({"x": column}))
    with pytest.raises(SpecError, match=r"cannot put fill=(.|\n)*expected  a number of"):
        fc.open(path, fill=fill)["x"]


def test_other_types_are_refused_where_they_are_asked_for(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["a", "b"], "list": [[1], [2, 3]],
            "kind": pa.array(["u", "v"]).dictionary_encode(), "x": [1.0, 2.0],
        }
    )  # fmt: skip
    for path in (parquet(tmp_path / "x.parquet", table), arrow(tmp_path / "x.arrow", table)):
        opened = fc.open(path)
        np.testing.assert_array_equal(opened["x"].resolve(progress=False), [1.0, 2.0])
        for name in ("text", "list", "kind"):
            with pytest.raises(SpecError, match=f"column {name!r}(.|\\n)*or leave it out: "):
                opened[name]
        with pytest.raises(SpecError, match=r"pandas\.factorize"):
            opened[opened["x"] > 1]
        for key in ("y", ["x", "y"]):
            with pytest.raises(KeyError, match="no column 'y'"):
                opened[key]
        assert opened[["x"]][opened["x"] > 1]["x"].resolve(progress=False).tolist() == [2.0]


TIMES = (
    pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("us"), pa.timestamp("s", "Europe/Berlin"), pa.timestamp("ms"),
    pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.duration("ms"), pa.list_(pa.timestamp("us"), 2),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["zstd", "plain", "arrow", "arrow, lz4"])
def test_dates_and_times_are_their_integers(tmp_path: Path, kind: str) -> None:
    columns, wanted = {}, {}
    for name, type_ in zip("abcdefghij", TIMES, strict=True):
        plain = type_.value_type if name == "j" else type_
        numbers = np.arange(350 * (name == "j") + 350).astype(f"i{plain.bit_width // 8}")
        numbers *= 86_400_000 if plain == pa.date64() else 97
        column = pa.array(numbers).view(plain)
        columns[name] = pa.FixedSizeListArray.from_arrays(column, 2) if name == "j" else column
        wanted[name] = numbers.reshape(-1, 2) if name == "j" else numbers
    columns["null"] = pa.array([None, 5] * 175).view(pa.timestamp("us"))
    wanted["null"] = np.tile([-1, 5], 175)
    path = FILES[kind](tmp_path, pa.table(columns))
    table = fc.open(path, fill={"null": -1})
    assert "null: timestamp[us]" in repr(table)
    if path.suffix == ".parquet":
        wanted["e"] = wanted["e"] * 1000  # Parquet has no seconds, and no milliseconds of days
        wanted["b"] = np.arange(350, dtype="i4")
    for name, found in zip(wanted, fc.resolve(*table.values(), progress=False), strict=True):
        np.testing.assert_array_equal(found, wanted[name], strict=True)


def test_columns_and_records_of_a_table(tmp_path: Path) -> None:
    for table in (
        fc.open(parquet(tmp_path / "x.parquet", pa.table(COLUMNS))),
        fc.table({k: fc.source(v) for k, v in COLUMNS.items()}),
    ):
        some = table[["c", "a"]]
        assert (some.columns, some.length) == (("c", "a"), N)
        kept, part = table[table["a"] > 0.5], some[100:20_000:3]
        assert (kept.columns, kept.length, part.length) == (tuple(COLUMNS), None, 6634)
        mask = COLUMNS["a"] > 0.5
        chosen = fc.resolve(*kept.values(), *part.values(), *table[mask][["b"]].values(), progress=False)
        wanted = [one[mask] for one in COLUMNS.values()] + [COLUMNS[name][100:20_000:3] for name in ("c", "a")]
        for got, want in zip(chosen, [*wanted, COLUMNS["b"][mask]], strict=True):
            np.testing.assert_array_equal(got, want, strict=True)
        with pytest.raises(AttributeError, match=r"no attribute 'a'; use table\['a'\]$"):
            table.a  # noqa: B018
        with pytest.raises(AttributeError, match=r"no attribute 'groupby'; use fc\.segment_sum\("):
            table.groupby  # noqa: B018
        with pytest.raises(AttributeError, match=r"no attribute 'nothing_like_it'$"):
            table.nothing_like_it  # noqa: B018
        with pytest.raises(SpecError, match="table of this"):
            table[[]]


def test_arguments_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x.parquet", pa.table(COLUMNS))
    for options in ({"dtype": "f4"}, {"shape": (5,)}, {"offset": 3}, {"key": "a"}):
        with pytest.raises(SpecError, match="cannot use"):
            fc.open(path, **options)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(SpecError, match="fill="):
        fc.open(tmp_path / "x.npy", fill=0)
    with pytest.raises(SourceError, match="tables and arrays"):
        fc.open([path, tmp_path / "x.npy"])
    with pytest.raises(SpecError, match="read, and not written"):
        fc.save(tmp_path / "y.arrow")


def test_many_records_in_few_bytes_stream_in_bounded_memory(tmp_path: Path) -> None:
    ones = pa.chunked_array([pa.array(np.ones(1_000_000, "f4"))] * 12)
    path = parquet(tmp_path / "x.parquet", pa.table({"x": ones}), row_group_size=12_000_000)
    assert path.stat().st_size < 100_000
    x = fc.open(path)["x"]
    assert fc.run(x.sum(), memory="8MiB", progress=False).value == 12_000_000
    assert sum(size for _, size in x.sum().plan(memory="8MiB").memory.items) <= 8 << 20


def test_compressed_batches_of_arrow_files_count_in_the_plan(tmp_path: Path) -> None:
    table = pa.table({"x": np.ones(4_000_000, "f4")})
    path = arrow(tmp_path / "x.arrow", table, 4_000_000)
    assert fc.run(fc.open(path)["x"].sum(), memory="8MiB", progress=False).value == 4_000_000
    path = arrow(tmp_path / "x.arrow", table, 4_000_000, compression="zstd")
    with pytest.raises(PlanError, match=r"x \(chunks\)"):
        fc.open(path)["x"].sum().plan(memory="8MiB")


@pytest.mark.parametrize("kind", ["parquet", "zstd", "arrow"])
def test_damage_is_told_with_the_file(tmp_path: Path, kind: str) -> None:
    path = FILES[kind](tmp_path, pa.table(COLUMNS))
    whole = path.read_bytes()
    for data in (b"", b"PAR1", whole[:1000], whole[:-9], b"x" * 5000):
        path.write_bytes(data)
        with pytest.raises(SourceError, match=path.name):
            fc.open(path)
    data = bytearray(whole)
    data[2000:2600] = os.urandom(600)
    path.write_bytes(data)
    try:
        for name in COLUMNS:
            assert len(fc.open(path)[name].resolve(progress=False)) == N
    except SourceError as error:
        assert path.name in str(error)


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 1 << 16), bits=st.integers(1, 255), kind=st.sampled_from(["parquet", "arrow"]))
def test_a_changed_byte_is_an_error_or_other_numbers(
    tmp_path_factory: pytest.TempPathFactory, at: int, bits: int, kind: str
) -> None:
    small = pa.table({name: column[:50] for name, column in COLUMNS.items()})
    path = FILES[kind](tmp_path_factory.mktemp("t"), small)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= bits
    path.write_bytes(data)
    read_or_refused(path)


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x.parquet", pa.table(COLUMNS))
    x = fc.open(path)["a"]
    parquet(path, pa.table({name: column[::-1] for name, column in COLUMNS.items()}))
    with pytest.raises(SourceError, match="changed"):
        x.resolve(progress=False)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_frozen_job_goes_on_within_a_group(tmp_path: Path, kind: str) -> None:
    table = fc.open(FILES[kind](tmp_path, pa.table(COLUMNS)))
    job = table["a"] * 2 + table["b"].astype("f4")
    whole = fc.run(job >> fc.save(tmp_path / "whole.npy"), progress=False).value
    frozen(job, tmp_path / "y.npy", tmp_path / "kept")
    fc.thaw(tmp_path / "kept").resolve(progress=False)
    assert (tmp_path / "y.npy").read_bytes() == Path(whole).read_bytes()


def test_columns_have_their_names_in_metrics_and_in_plans(tmp_path: Path) -> None:
    table = {name: np.arange(9.0) for name in ("speed", "hour", "two words", "w" * 65)}
    opened = fc.open(parquet(tmp_path / "x.parquet", pa.table(table)))
    run = fc.run(*(one.sum() for one in opened.values()), device="numpy", progress=False)
    assert [*run.metrics][:4] == ["speed", "hour", "open", "open_2"]
    assert "read   speed x.parquet[speed]: " in str(run.plan)
    assert run.values == (36.0,) * 4


def test_a_checkpoint_of_the_time_when_all_columns_were_called_open_is_thawed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fc.open(parquet(tmp_path / "x.parquet", pa.table(COLUMNS)))
    job = table["a"] * 2 + table["b"].astype("f4")
    whole = fc.run(job >> fc.save(tmp_path / "whole.npy"), progress=False).value
    with monkeypatch.context() as before:
        before.setattr(type(table["a"]), "label", "open")
        frozen(job, tmp_path / "y.npy", tmp_path / "kept")
    assert fc.thaw(tmp_path / "kept").elements()
    fc.thaw(tmp_path / "kept").resolve(progress=False)
    assert (tmp_path / "y.npy").read_bytes() == Path(whole).read_bytes()


def test_a_frozen_job_over_a_folder_of_parts_goes_on_by_its_own_program(tmp_path: Path) -> None:
    parts(tmp_path / "x.parquet")
    frozen(fc.open(tmp_path / "x.parquet")["a"] * 2, tmp_path / "y.npy", tmp_path / "kept")
    again = fc.open(tmp_path / "x.parquet")["a"] * 2 >> fc.save(tmp_path / "y.npy")
    fc.run(again, checkpoint=tmp_path / "kept", progress=False)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), X[:, 0] * 2)


def test_the_state_of_each_part_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = parts(tmp_path / "x.parquet")[-1]
    frozen(fc.open(tmp_path / "x.parquet")["a"] * 2, tmp_path / "y.npy", tmp_path / "kept")
    os.utime(last)

    def job() -> Any:
        return fc.open(tmp_path / "x.parquet")["a"] * 2 >> fc.save(tmp_path / "y.npy")

    with pytest.raises(fc.CheckpointError, match=r"part-2.*has changed: its time of change"):
        fc.run(job(), checkpoint=tmp_path / "kept", progress=False)
    assert main(["checkpoint", "verify", str(tmp_path / "kept")]) == 1
    assert f"{last} has changed" in capsys.readouterr().out
    fc.run(job(), checkpoint=tmp_path / "kept", progress=False, accept_touched=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), X[:, 0] * 2)
