"""Headers of Parquet's pages, read before pyarrow sees them: sound ones to the byte, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SourceError
from flowcompute.sources.columnar.parquet_pages import MOST_HEADER_BYTES, read_header
from flowcompute.sources.columnar.table_file import ColumnarError

X = np.random.default_rng(3).standard_normal(30_000)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "zstd", "snappy"])
def test_pages_follow_each_other_to_the_end_of_their_column(tmp_path: Path, codec: str, version: str) -> None:
    table = pa.table({"x": X, "n": np.arange(len(X)) % 90, "b": X > 0})
    options = {"compression": codec, "data_page_version": version, "write_page_checksum": True}
    pq.write_table(table, tmp_path / "x.parquet", data_page_size=5000, write_statistics=True, **options)
    data = memoryview((tmp_path / "x.parquet").read_bytes())
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    for column in map(group.column, range(3)):
        begin = column.dictionary_page_offset or column.data_page_offset
        place, stop, whole = begin, begin + column.total_compressed_size, 0
        while place < stop:
            assert read_header(data[place : place + 3]) is None
            header = read_header(data[place : place + 300])
            assert header is not None
            place += header.header_bytes + header.stored_bytes
            whole += header.header_bytes + header.page_bytes
        assert (place, whole) == (stop, column.total_uncompressed_size)


@given(data=st.binary(max_size=40) | st.lists(st.sampled_from([0x19, 0x1C, 0x15, 0xFF, 0x2B, 0x00, 0xF9]), max_size=60))
def test_other_bytes_are_no_header_or_need_more(data: bytes | list[int]) -> None:
    try:
        header = read_header(memoryview(bytes(data)))
    except ColumnarError:
        return
    assert header is None or (header.header_bytes <= len(data) and min(header.stored_bytes, header.page_bytes) >= 0)


@pytest.mark.parametrize(
    "data",
    [b"\x18\xff\xff\xff\x7f" + bytes(1 << 17), b"\x1c" * (1 << 17), b"\x19\x19" * (1 << 16), b"\x15" + b"\x80" * 99],
    ids=["text", "structures", "lists", "number"],
)
def test_headers_are_bounded(data: bytes) -> None:
    with pytest.raises(ColumnarError, match="page's header"):
        read_header(memoryview(data)[:MOST_HEADER_BYTES])


def test_larger_pages_than_those_that_were_looked_at_are_refused(tmp_path: Path) -> None:
    flat = pa.array(np.random.default_rng(0).integers(0, 1 << 30, 1_200_000))
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(flat, 100)})
    pq.write_table(table, tmp_path / "x.parquet", data_page_size=1 << 23, use_dictionary=False, row_group_size=12_000)
    x = fc.open(tmp_path / "x.parquet")["x"]
    assert 8 << 20 < x.unit_bytes < 10 << 20
    assert x.held_bytes > 2 * x.unit_bytes
    assert fc.run(x.sum(), progress=False).value == flat.to_numpy().sum()
    x.freeze_fields(unit_bytes=1 << 20)
    with pytest.raises(
        SourceError, match=r"column 'x' of .*x.parquet: a page has \d+ bytes, and the plan counts 1048576"
    ):
        fc.run(x.sum(), progress=False)


def test_columns_with_dots_in_their_names_are_told_apart(tmp_path: Path) -> None:
    parts = pa.StructArray.from_arrays([pa.array(X), pa.array(-X)], ["x", "y"])
    table = pa.table({"a.b": X * 2, "a": X, "s": parts, "s.x": X * 3, "last": X * 4})
    pq.write_table(table, tmp_path / "x.parquet")
    opened = fc.open(tmp_path / "x.parquet")
    for name, wanted in (("a.b", X * 2), ("a", X), ("last", X * 4)):
        np.testing.assert_array_equal(opened[name].resolve(progress=False), wanted)
    with pytest.raises(SourceError, match="part of a structure"):
        opened["s.x"]


def test_a_damaged_page_is_told_with_its_column_and_records(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    options = {"write_page_checksum": True, "use_dictionary": False, "compression": "none"}
    pq.write_table(pa.table({"n": np.arange(len(X)), "x": X}), path, row_group_size=10_000, **options)
    data = bytearray(path.read_bytes())
    data[pq.read_metadata(path).row_group(1).column(1).data_page_offset + 500] ^= 1
    path.write_bytes(data)
    opened = fc.open(path)
    np.testing.assert_array_equal(opened["n"].resolve(progress=False), np.arange(len(X)))
    with pytest.raises(SourceError, match=r"column 'x' of .*x.parquet: it is damaged: .*checksum") as caught:
        opened["x"].resolve(progress=False)
    assert caught.value.records == (10_000, 20_000)


def test_a_small_budget_reads_several_columns(tmp_path: Path) -> None:
    columns = {name: np.random.default_rng(i).standard_normal(100_000, np.float32) for i, name in enumerate("abcd")}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", compression="zstd", row_group_size=77_777)
    table = fc.open(tmp_path / "x.parquet")
    made = fc.stack([table[name] for name in "abcd"], axis=1).sum(axis=0)
    found = made.resolve(memory="4MiB", device="numpy", progress=False)
    np.testing.assert_allclose(found, [column.sum(dtype="f8") for column in columns.values()], rtol=1e-4, atol=1e-2)
