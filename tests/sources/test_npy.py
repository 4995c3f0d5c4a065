"""The .npy source: hostile files, sizes that do not match, orders and byte orders."""

import contextlib
import os
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.errors import FlowError, SourceError, SpecError
from flowcompute.sources.npy_source import NpySource
from flowcompute.spec import BFLOAT16, FLOAT32, Stream
from flowcompute.testing.contracts import assert_same
from tests.properties.cases import cases
from tests.sources.test_npy_header import entry, head


def refused(path: Path, *words: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        NpySource(path)
    text = str(caught.value)
    for word in (str(path), os.path.basename(__file__), *words):
        assert word in text, text
    return caught.value


def read_all(source: NpySource) -> np.ndarray:
    out = np.empty((source.layout.length, *source.spec.shape), source.spec.dtype)
    reader = source.open(mapped=False)
    assert reader.read(out) == len(out)
    reader.close()
    return out


def test_the_spec_is_the_headers(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((5, 2, 3), ">i2"))
    source = NpySource(tmp_path / "x.npy", name="x")
    assert source.spec.dtype == np.int16
    assert source.spec.dtype.isnative
    assert source.spec.shape == (2, 3)
    assert source.spec.stream == Stream(5)
    assert source.name == "x"


def test_the_identity_is_the_file_in_its_state(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(3))
    (tmp_path / "link.npy").symlink_to(path)
    first = NpySource(path)
    status = path.stat()
    assert first.identity == (
        "npy", os.path.realpath(path), status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns,
    )  # fmt: skip
    assert NpySource(tmp_path / "link.npy").identity == first.identity
    os.utime(path, (5, 5))
    assert NpySource(path).identity != first.identity


@pytest.mark.parametrize("cut", [1, 4, 127, 128, 400])
def test_a_file_cut_short_names_path_and_both_sizes(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "short.npy"
    np.save(path, np.zeros((100, 10), np.float32))
    os.truncate(path, 4128 - cut)
    refused(path, "shorter", "4128 bytes", f"{4128 - cut} bytes")


def test_a_file_cut_inside_its_header_names_its_size(tmp_path: Path) -> None:
    path = tmp_path / "short.npy"
    np.save(path, np.zeros((100, 10), np.float32))
    os.truncate(path, 50)
    refused(path, "header", "50 bytes")


@pytest.mark.parametrize("more", [1, 4000])
def test_bytes_after_the_array_are_refused(tmp_path: Path, more: int) -> None:
    path = tmp_path / "long.npy"
    np.save(path, np.zeros((100, 10), np.float32))
    with path.open("ab") as stream:
        stream.write(bytes(more))
    refused(path, "longer", "4128 bytes", f"{4128 + more} bytes")


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        ("(300000000000,)", "shorter"),
        (f"({2**63 - 1},)", "shorter"),
        (f"({2**33}, {2**33})", "shorter"),
        (f"({2**62}, 4)", "shorter"),  # the bytes wrap to 0 in 64 bits
        (f"(4, {2**62})", "2**63"),
        (f"(0, {2**62})", "2**63"),
        (f"(0, {2**62}, {2**62})", "2**63"),
        ("(1000000000000, 0)", "no bytes"),
        ("(1, 0)", "no bytes"),
        ("()", "single number"),
    ],
)
def test_shapes_that_lie_are_refused_without_allocating(tmp_path: Path, shape: str, word: str) -> None:
    path = tmp_path / "lie.npy"
    path.write_bytes(head(entry(shape=shape)))
    tracemalloc.start()
    refused(path, word)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_single_number_is_refused_with_a_hint(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.float64(3))
    assert "fc.constant" in str(refused(tmp_path / "x.npy"))


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.save(tmp_path / "x.npy", np.array([Trap(), Trap()], object), allow_pickle=True)
    refused(tmp_path / "x.npy", "object")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.zeros(3, [("a", "<f4"), ("b", "O")]), "structured"),
        (np.zeros(3, [("a", "<f4")]), "structured"),
        (np.zeros(3, "S4"), "byte strings"),
        (np.zeros(3, "U4"), "text"),
        (np.zeros(3, "c8"), "complex"),
        (np.zeros(3, "M8[s]"), "dates"),
        (np.zeros(3, "V3"), "void"),
        (np.zeros(3, np.longdouble), "not supported"),
    ],
    ids=["objects in fields", "fields", "S4", "U4", "c8", "M8", "V3", "long double"],
)
def test_other_dtypes_are_refused(tmp_path: Path, array: np.ndarray, word: str) -> None:
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    refused(tmp_path / "x.npy", word)


def test_bfloat16_must_be_named(tmp_path: Path) -> None:
    array = np.array([1.5, np.nan, -0.0], BFLOAT16)
    np.save(tmp_path / "x.npy", array)
    assert 'dtype="bfloat16"' in str(refused(tmp_path / "x.npy", "V2"))
    for dtype in ("bfloat16", ml_dtypes.bfloat16):
        source = NpySource(tmp_path / "x.npy", dtype=dtype)
        assert source.spec.dtype == BFLOAT16
        assert_same(read_all(source), array)


def test_a_dtype_of_ones_own_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3, ">f4"))
    assert NpySource(tmp_path / "x.npy", dtype="float32").spec.dtype == FLOAT32
    for dtype in ("float64", "bfloat16", "complex64", "nonsense"):
        with pytest.raises(SpecError):
            NpySource(tmp_path / "x.npy", dtype=dtype)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("shape", [(50,), (50, 1), (1, 50), (7, 40), (3, 5, 7), (2, 3, 4, 5), (300, 700)], ids=str)
def test_fortran_files_are_read_right_in_odd_pieces(tmp_path: Path, shape: tuple[int, ...], order: str) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(order + "i4")
    np.save(tmp_path / "x.npy", np.asfortranarray(array))
    source = NpySource(tmp_path / "x.npy")
    reader = source.open()
    pieces, position = [], 0
    while position < len(array):
        out = np.empty((min(11, len(array) - position), *shape[1:]), np.int32)
        assert reader.read(out) == len(out)
        pieces.append(out)
        position += len(out)
    reader.close()
    np.testing.assert_array_equal(np.concatenate(pieces), array)


@pytest.mark.parametrize("shape", [(3000, 300), (2, 600_000), (9000, 4, 100), (5000, 2000), (300, 4, 1000)], ids=str)
def test_fortran_files_larger_than_the_scratch_are_read_right(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    np.save(tmp_path / "x.npy", np.asfortranarray(array))
    np.testing.assert_array_equal(read_all(NpySource(tmp_path / "x.npy")), array)


def test_swapped_files_larger_than_the_scratch_are_read_right(tmp_path: Path) -> None:
    array = np.arange(700_000, dtype=np.float32)
    np.save(tmp_path / "x.npy", array.astype(">f4"))
    np.testing.assert_array_equal(read_all(NpySource(tmp_path / "x.npy")), array)


def test_fortran_order_that_is_c_order_too_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for array in (np.arange(5), np.arange(5).reshape(5, 1), np.arange(5).reshape(1, 5), np.empty((0, 3))):
        text = entry(f"'{array.dtype.str}'", "True", str(array.shape))
        path.write_bytes(head(text + " " * (-(len(text) + 11) % 64)) + array.tobytes())
        os.utime(path, (1e9, 1e9))
        source = NpySource(path)
        assert source.must_read() is None
        reader = source.open()
        view = reader.view(10)
        assert view is not None
        np.testing.assert_array_equal(view, array)
        del view
        reader.close()


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("fortran", [True, False])
def test_a_byte_that_is_no_bool_is_named(tmp_path: Path, mapped: bool, fortran: bool) -> None:
    path = tmp_path / "x.npy"
    array = np.ones((6, 2), bool, order="F" if fortran else "C")
    array.view(np.uint8)[4, 1] = 7
    np.save(path, array)
    os.utime(path, (1e9, 1e9))
    source = NpySource(path)
    reader = source.open(mapped=mapped)
    reader.read(np.empty((3, 2), bool))

    def rest() -> None:
        if reader.view(3) is None:
            reader.read(np.empty((3, 2), bool))

    with pytest.raises(SourceError) as caught:
        rest()
    assert caught.value.records == (4, 5)
    assert caught.value.got == "7"
    reader.close()


@cases(60)
@given(st.binary(max_size=200), st.booleans())
def test_any_file_gives_a_source_or_a_source_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, magic: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + data if magic else data)
    # Any other exception fails the test.
    with contextlib.suppress(SourceError):
        read_all(NpySource(path))


def test_every_changed_byte_of_a_real_file_is_handled(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6, dtype=np.int16).reshape(3, 2))
    good = path.read_bytes()
    for index in range(len(good)):
        for value in {0, 0x20, 0x31, 0x3E, 0x7B, 0xFF, good[index] ^ 1} - {good[index]}:
            path.write_bytes(good[:index] + bytes([value]) + good[index + 1 :])
            try:
                source = NpySource(path)
            except SourceError:
                continue
            assert source.layout.offset + source.layout.length * source.layout.item_bytes == len(good)


@pytest.mark.parametrize("path", ["", "\0", "a\0b.npy", b"x.npy", "\udfff.npy"])
def test_what_can_be_no_path_is_refused(path: str) -> None:
    with pytest.raises(FlowError):
        NpySource(path)
