"""The raw source: records that do not add up, arguments that make no sense, and what is no file."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.errors import SourceError, SpecError
from flowcompute.sources.raw_source import RawSource
from flowcompute.spec import BFLOAT16, Stream
from tests.properties.cases import cases


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.raw"
    path.write_bytes(bytes(range(1, 121)))
    return path


@given(st.integers(0, 200), st.sampled_from(["u1", "<i2", ">f4", "<f8"]), st.integers(1, 6), st.integers(0, 130))
@cases(60)
def test_lengths_follow_from_the_size(
    tmp_path_factory: pytest.TempPathFactory, size: int, dtype: str, numbers: int, offset: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.raw"
    data = np.random.default_rng(size).bytes(size)
    path.write_bytes(data)
    item = numbers * np.dtype(dtype).itemsize
    if offset > size or (size - offset) % item:
        with pytest.raises(SourceError, match=r"ends before|whole number"):
            RawSource(path, dtype=dtype, shape=(numbers,), offset=offset)
        return
    source = RawSource(path, dtype=dtype, shape=(numbers,), offset=offset)
    want = np.frombuffer(data[offset:], dtype).reshape(-1, numbers)
    assert source.spec.stream == Stream(len(want))
    out = np.empty(want.shape, source.spec.dtype)
    reader = source.open()
    assert reader.read(out) == len(want)
    reader.close()
    assert out.astype(dtype).tobytes() == want.tobytes()


def test_a_rest_names_the_sizes(file: Path) -> None:
    with pytest.raises(SourceError) as caught:
        RawSource(file, dtype="f4", shape=(7,), offset=1)
    for word in (str(file), "28 bytes", "119 bytes", "7 more than 4 records", os.path.basename(__file__)):
        assert word in str(caught.value)


def test_an_empty_file_is_an_empty_stream(tmp_path: Path) -> None:
    (tmp_path / "x.raw").touch()
    assert RawSource(tmp_path / "x.raw", dtype="f4").spec.stream == Stream(0)


@pytest.mark.parametrize("offset", [121, 10**30])
def test_an_offset_beyond_the_end_is_refused(file: Path, offset: int) -> None:
    with pytest.raises(SourceError, match="ends before"):
        RawSource(file, dtype="u1", offset=offset)


@pytest.mark.parametrize("offset", [-1, 1.5, "4", None, True])
def test_offsets_that_make_no_sense_are_refused(file: Path, offset: object) -> None:
    with pytest.raises(SpecError, match="offset="):
        RawSource(file, dtype="u1", offset=offset)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(-1,), (1.5,), "ab", (True,), None, (2, None), 1.0, (1,) * 64])
def test_shapes_that_make_no_sense_are_refused(file: Path, shape: object) -> None:
    with pytest.raises(SpecError, match="shape="):
        RawSource(file, dtype="u1", shape=shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(0,), (2, 0), (2**62, 2), (2**32, 2**32)])
def test_records_without_a_size_are_refused(file: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(SpecError, match="bytes"):
        RawSource(file, dtype="f4", shape=shape)


def test_a_number_is_a_shape_of_one_axis(file: Path) -> None:
    assert RawSource(file, dtype="u1", shape=4).spec.shape == (4,)
    assert RawSource(file, dtype="u1", shape=[np.int64(4)]).spec.shape == (4,)


@pytest.mark.parametrize("dtype", ["O", "c8", "V2", "S4", "M8[s]", "nonsense", [("a", "f4")], "f4,f4"])
def test_dtypes_that_are_not_supported_are_refused(file: Path, dtype: object) -> None:
    with pytest.raises(SpecError, match=r"dtype|data type|not understood"):
        RawSource(file, dtype=dtype)


def test_byte_order_is_the_dtypes(file: Path) -> None:
    for dtype in (">u2", "<u2", "u2"):
        source = RawSource(file, dtype=dtype)
        out = np.empty(60, np.uint16)
        reader = source.open()
        reader.read(out)
        reader.close()
        np.testing.assert_array_equal(out, np.frombuffer(file.read_bytes(), dtype))
        assert source.spec.dtype.isnative


def test_bfloat16_is_read(file: Path) -> None:
    source = RawSource(file, dtype="bfloat16", shape=(3,))
    assert source.spec.dtype == BFLOAT16
    assert source.spec.stream == Stream(20)


def test_how_the_bytes_are_read_belongs_to_the_identity(file: Path) -> None:
    made = [
        RawSource(file, dtype="u1"),
        RawSource(file, dtype="i1"),
        RawSource(file, dtype="<u2"),
        RawSource(file, dtype=">u2"),
        RawSource(file, dtype="u1", shape=2),
        RawSource(file, dtype="u1", offset=2),
    ]
    assert len({source.identity for source in made}) == len(made)
    assert RawSource(file, dtype="u1").identity == made[0].identity


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/zero")
    with pytest.raises(SourceError, match=kind) as caught:
        RawSource(path, dtype="u1")
    assert str(path) in str(caught.value)


def test_a_huge_sparse_file_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.raw"
    path.touch()
    os.truncate(path, 1 << 42)
    source = RawSource(path, dtype="f4", shape=(1024,))
    assert source.spec.stream == Stream(1 << 30)
    reader = source.open(position=(1 << 30) - 2)
    assert reader.read(np.empty((5, 1024), np.float32)) == 2
    reader.close()
