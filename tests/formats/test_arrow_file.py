"""Arrow IPC files around pyarrow: buffers where they lie, behind any other columns; lies about sizes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SourceError, SpecError
from tests.formats.test_tables import arrow, read_or_refused

N = 700
X = np.random.default_rng(3).standard_normal(N)
TEXT = pa.array([f"text {i}" * (i % 5) for i in range(N)])
# One column of each layout, so that each stands before another one.
OTHERS = {
    "null": pa.nulls(N),
    "bool": pa.array(X > 0),
    "text": TEXT,
    "large": TEXT.cast(pa.large_string()),
    "views": TEXT.cast(pa.string_view()),
    "bytes": TEXT.cast(pa.binary()),
    "fixed": pa.array([b"abc"] * N, pa.binary(3)),
    "decimal": pa.array(range(N), pa.decimal128(20)),
    "list": pa.array([[1] * (i % 3) for i in range(N)]),
    "list views": pa.array([[1] * (i % 3) for i in range(N)], pa.list_view(pa.int8())),
    "pairs": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * N)), 2),
    "structure": pa.array([{"a": i, "b": "c"} for i in range(N)]),
    "map": pa.array([[("k", 1)]] * N, pa.map_(pa.string(), pa.int8())),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([N], pa.int32()), pa.array([1.5])),
    "kinds": pa.array(["u", "v"] * (N // 2)).dictionary_encode(),
    "dense": pa.UnionArray.from_dense(pa.array([0] * N, pa.int8()), pa.array(range(N), pa.int32()), [pa.array(X)]),
    "sparse": pa.UnionArray.from_sparse(pa.array([0] * N, pa.int8()), [pa.array(X)]),
    "when": pa.array(range(N), pa.timestamp("us")),
}


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_columns_are_found_behind_columns_of_any_layout(tmp_path: Path, codec: str | None) -> None:
    columns = {}
    for i, (name, other) in enumerate(OTHERS.items()):
        columns |= {name: other, f"x{i}": pa.array(X * i)}
    opened = fc.open(arrow(tmp_path / "x.arrow", pa.table(columns), 301, compression=codec))
    for i in range(len(OTHERS)):
        np.testing.assert_array_equal(opened[f"x{i}"].resolve(progress=False), X * i, strict=True)
    np.testing.assert_array_equal(opened["pairs"].resolve(progress=False), np.arange(2 * N).reshape(N, 2))
    np.testing.assert_array_equal(opened["bool"].resolve(progress=False), X > 0)


@pytest.mark.parametrize("codec", [None, "lz4"])
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f8"])
def test_nulls_of_each_type_are_filled(tmp_path: Path, dtype: str, codec: str | None) -> None:
    values, nulls = np.arange(N).astype(dtype), np.arange(N) % 11 == 3
    fill: Any = True if dtype == "?" else 7
    flat = pa.array(values, mask=nulls)
    path = arrow(tmp_path / "x.arrow", pa.table({"x": flat}), 299, compression=codec)
    wanted = np.where(nulls, np.array(fill, dtype), values)
    with pytest.raises(SourceError, match="nulls"):
        fc.open(path)["x"].resolve(progress=False)
    np.testing.assert_array_equal(fc.open(path, fill=fill)["x"].resolve(progress=False), wanted, strict=True)
    if dtype == "i1":
        with pytest.raises(SpecError, match="300"):
            fc.open(path, fill=300)["x"]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("claim", [1 << 40, -2, 8 * N - 1, 8 * N + 5000, 0])
def test_a_false_length_of_a_compressed_buffer_is_refused_before_it_is_believed(
    tmp_path: Path, claim: int, codec: str
) -> None:
    path = arrow(tmp_path / "x.arrow", pa.table({"x": np.zeros(N)}), N, compression=codec)
    data = path.read_bytes()
    assert data.count(struct.pack("<q", 8 * N)) == 1
    path.write_bytes(data.replace(struct.pack("<q", 8 * N), struct.pack("<q", claim)))
    x = fc.open(path)["x"]
    with pytest.raises(
        SourceError, match=rf"column 'x' of .*x.arrow: a buffer says that it expands to {claim} bytes"
    ) as caught:
        x.resolve(progress=False)
    assert caught.value.records == (0, N)


@given(at=st.integers(0, 1 << 12), word=st.sampled_from([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 255, 1 << 20]))
def test_changed_metadata_are_an_error_or_other_numbers(
    tmp_path_factory: pytest.TempPathFactory, at: int, word: int
) -> None:
    path = arrow(tmp_path_factory.mktemp("t") / "x.arrow", pa.table({"x": X[:40], "b": X[:40] > 0}), 30)
    data = bytearray(path.read_bytes())
    place = at * 4 % len(data) // 4 * 4
    data[place : place + 4] = struct.pack("<I", word)[: len(data) - place]
    path.write_bytes(data)
    read_or_refused(path)


def test_a_name_that_is_no_text_is_damage(tmp_path: Path) -> None:
    path = arrow(tmp_path / "x.arrow", pa.table({"some name": X}))
    path.write_bytes(path.read_bytes().replace(b"some name", b"\xff\x80me name"))
    with pytest.raises(SourceError, match=r"cannot open .*x.arrow: it is damaged"):
        fc.open(path)


def test_a_file_that_is_cut_short_within_a_batch_is_told(tmp_path: Path) -> None:
    path = arrow(tmp_path / "x.arrow", pa.table({"x": X}), 100)
    data = path.read_bytes()
    size = int.from_bytes(data[-10:-6], "little")
    path.write_bytes(data[:1000] + data[-10 - size :])
    with pytest.raises(SourceError, match="damaged"):
        fc.open(path)["x"].resolve(progress=False)
