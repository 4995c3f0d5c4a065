"""Levels of Parquet's pages, run by run, beside the same levels as an array; and columns that pyarrow does not decode."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SourceError
from flowcompute.files import FILES
from flowcompute.sources.columnar import _pyarrow
from flowcompute.sources.columnar.parquet_levels import all_present, check_lists
from flowcompute.sources.columnar.table_file import ColumnarError

RUNS = st.lists(st.integers(-40, 40).filter(bool), min_size=1, max_size=12)


def varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def encoded(levels: np.ndarray, runs: list[int], bits: int) -> bytes:
    """Levels as any writer may have them: so many packed groups where a run is below 0, else that many equal levels."""
    made, at = b"", 0
    while at < len(levels):
        for run in runs:
            if run < 0:
                part = np.zeros(-8 * run, np.uint8)
                some = levels[at : at + len(part)]
                part[: len(some)] = some
                packed = np.packbits((part[:, None] >> np.arange(bits)) & 1, bitorder="little")
                made, at = made + varint(-2 * run + 1) + packed.tobytes(), at + len(some)
            elif at < len(levels):
                part = levels[at : at + run]
                equal = int((np.append(part, ~part[:1]) != part[0]).argmax())
                made, at = made + varint(2 * equal) + bytes(part[:1]), at + equal
            if at >= len(levels):
                break
    return made


@given(item=st.integers(1, 40), first=st.integers(0, 80), count=st.integers(1, 2000), runs=RUNS, data=st.data())
def test_lists_of_one_size_pass_and_no_others(item: int, first: int, count: int, runs: list[int], data: Any) -> None:
    levels = (np.arange(first, first + count) % item != 0).astype(np.uint8)
    check_lists(encoded(levels, runs, 1), count, first, item)
    levels[data.draw(st.integers(0, count - 1))] ^= 1
    with pytest.raises(ColumnarError, match="a record has more numbers"):
        check_lists(encoded(levels, runs, 1), count, first, item)


@given(most=st.integers(1, 3), count=st.integers(1, 2000), runs=RUNS, data=st.data())
def test_nulls_are_noticed(most: int, count: int, runs: list[int], data: Any) -> None:
    levels = np.full(count, most, np.uint8)
    bits = most.bit_length()
    assert all_present(encoded(levels, runs, bits), most, count)
    levels[data.draw(st.integers(0, count - 1))] = data.draw(st.integers(0, most - 1))
    assert not all_present(encoded(levels, runs, bits), most, count)


@given(levels=st.binary(max_size=30), count=st.integers(1, 1 << 31), item=st.integers(1, 1 << 31))
@example(levels=varint(1 << 32) + b"\0", count=1 << 31, item=1)
@example(levels=varint(2) + b"\0" + varint((1 << 32) - 2) + b"\1", count=(1 << 31) - 1, item=1 << 31)
def test_any_bytes_are_checked_at_once_or_refused(levels: bytes, count: int, item: int) -> None:
    for check in (lambda: check_lists(levels, count, 0, item), lambda: all_present(levels, 3, count)):
        try:
            check()
        except ColumnarError as error:
            assert "levels of a page" in str(error) or "a record has" in str(error)


@pytest.fixture
def decoded_by_pyarrow(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Columns and groups that pyarrow decodes, as it happens."""
    seen, decoded = [], _pyarrow._ParquetTable._decoded

    def watched(self: Any, column: Any, group: int, *args: Any) -> Any:
        seen.append((column.name, group))
        return decoded(self, column, group, *args)

    monkeypatch.setattr(_pyarrow._ParquetTable, "_decoded", watched)
    return seen


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("nullable", [False, True])
def test_plain_pages_are_those_of_pyarrow(
    tmp_path: Path, version: str, codec: str, nullable: bool, decoded_by_pyarrow: list[tuple[str, int]]
) -> None:
    rng = np.random.default_rng(5)
    numbers = {kind: rng.integers(0, 100, 3000).astype(kind) for kind in ("i1", "u4", "u8", "f2", "f4", "f8")}
    arrays = {f"{kind}, {item}": x.reshape(-1, item) if item else x for kind, x in numbers.items() for item in (0, 12)}
    arrays |= {"b": rng.random(3000)[:250] > 0.5, "one": numbers["i1"][:250].reshape(-1, 1)}
    fields, columns = [], []
    for name, x in arrays.items():
        flat = pa.array(x.reshape(-1))
        kind = pa.list_(pa.field("item", flat.type, nullable), x.shape[1]) if x.ndim > 1 else flat.type
        fields.append(pa.field(name, kind, nullable))
        columns.append((pa.FixedSizeListArray.from_arrays(flat, type=kind) if x.ndim > 1 else flat)[:250])
    options = {"compression": codec, "data_page_version": version, "write_page_checksum": True}
    table = pa.table(columns, schema=pa.schema(fields))
    pq.write_table(
        table, tmp_path / "x.parquet", use_dictionary=False, row_group_size=101, data_page_size=99, **options
    )
    opened = fc.open(tmp_path / "x.parquet")
    for name, x in arrays.items():
        np.testing.assert_array_equal(opened[name].resolve(progress=False, device="numpy"), x[:250], strict=True)
    seen = {name for name, _ in decoded_by_pyarrow}
    expected = {"b"} if version == "2.0" else set()  # bools are runs there
    assert seen == (set(arrays) if codec in ("brotli", "lz4") else expected)


def test_pyarrow_goes_on_where_nulls_begin(tmp_path: Path, decoded_by_pyarrow: list[tuple[str, int]]) -> None:
    x = np.arange(30_000, dtype="f8")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(x, mask=x == 17_001), 3)
    table = pa.table({"x": pa.array(x, mask=x == 17_001), "y": pa.concat_arrays([lists] * 3)})
    options = {"row_group_size": 10_000, "data_page_size": 1000, "use_dictionary": False}
    pq.write_table(table, tmp_path / "x.parquet", **options)
    opened = fc.open(tmp_path / "x.parquet", fill=-1)
    wanted = np.where(x == 17_001, -1, x)
    np.testing.assert_array_equal(opened["x"].resolve(progress=False), wanted)
    np.testing.assert_array_equal(opened["y"].resolve(progress=False), np.tile(wanted, 3).reshape(-1, 3))
    assert decoded_by_pyarrow == [("x", 1), ("x", 2), ("y", 0), ("y", 1), ("y", 2)]
    with pytest.raises(SourceError, match="has 1 null\n") as caught:
        fc.open(tmp_path / "x.parquet")["x"].resolve(progress=False)
    assert caught.value.records is not None
    assert caught.value.records[0] <= 17_001 < caught.value.records[1]


def test_one_request_is_held_at_a_time(tmp_path: Path) -> None:
    x = np.arange(1_000_000, dtype="f4")
    pq.write_table(pa.table({"x": x}), tmp_path / "x.parquet", compression="none", use_dictionary=False)
    table = fc.open(tmp_path / "x.parquet").tables[0]
    handle = FILES.open_read(str(tmp_path / "x.parquet"))
    try:
        table = _pyarrow.open_parquet(FILES, handle, table.footer)
        table._page_part_bytes = 2 << 20  # as where a read is a request
        tracemalloc.start()
        firsts = [int(part[0]) for part in table.slices(table.columns[0], 0, None, 2 << 20)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        FILES.close(handle)
    assert firsts == list(range(0, len(x), 20_000))
    assert peak < 3 << 20


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("more", [-1, 1])
def test_data_that_expand_to_other_bytes_than_said_are_refused(codec: str, more: int) -> None:
    stored = memoryview(pa.Codec(codec).compress(bytes(1000)))
    assert _pyarrow.decompress(codec, stored, 1000) == bytes(1000)
    with pytest.raises(ColumnarError, match="damaged"):
        _pyarrow.decompress(codec, stored, 1000 + more)
