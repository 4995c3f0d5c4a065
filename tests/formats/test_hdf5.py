"""HDF5 and NetCDF-4 files as streams and as results, beside h5py; and what nobody should have written."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError, SourceError, SpecError
from flowcompute.sinks.hdf5.hdf5_header import checksum, header
from flowcompute.sources.chunked import ChunkError
from flowcompute.sources.hdf5 import filters
from flowcompute.sources.hdf5.filters import fletcher32, undone

X = np.random.default_rng(7).standard_normal((1003, 5)).astype("f4")
OPTIONS: dict[str, dict[str, Any]] = {
    "whole": {},
    "chunks": {"chunks": (100, 5)},
    "parts of items": {"chunks": (97, 2)},
    "gzip": {"chunks": (100, 5), "compression": "gzip"},
    "all filters": {"chunks": (99, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "checked": {"chunks": (99, 3), "fletcher32": True},
    "shuffled": {"chunks": (17, 5), "shuffle": True},
    "growing": {"chunks": (64, 5), "maxshape": (None, 5)},
}


def made(path: Path, array: np.ndarray = X, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=array, **options)
    return path


def read(path: Path, key: str | None = None, **options: Any) -> np.ndarray:
    return np.asarray(fc.open(path, key=key).resolve(progress=False, **options))


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", ">u4", "?", "f2", "u1"])
@pytest.mark.parametrize("options", OPTIONS)
def test_what_h5py_writes_is_read_bit_by_bit(tmp_path: Path, options: str, dtype: str) -> None:
    array = (X * 9).astype(dtype)
    path = made(tmp_path / "x.h5", array, **OPTIONS[options])
    np.testing.assert_array_equal(read(path), array.astype(array.dtype.newbyteorder("=")), strict=True)
    total = fc.run(fc.open(path)[:, 1].max(), strategy=fc.Strategy(batch_bytes=700), progress=False).value
    assert total == array[:, 1].max()


@pytest.mark.parametrize("options", OPTIONS)
def test_sums_have_the_bits_of_an_array(tmp_path: Path, options: str) -> None:
    x = fc.open(made(tmp_path / "x.h5", **OPTIONS[options]))
    small = fc.Strategy(batch_bytes=20 * 33)
    got = fc.run(x.sum(axis=0), strategy=small, progress=False).value
    assert got.tobytes() == fc.run(fc.source(X).sum(axis=0), progress=False).value.tobytes()


def test_missing_chunks_have_the_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        one = file.create_dataset("one", (25, 3), "f4", chunks=(10, 2), fillvalue=-2.5)
        one[10:12] = 7
        file.create_dataset("none", (9, 3), "i4", fillvalue=4)
        wanted = one[...]
    np.testing.assert_array_equal(read(tmp_path / "x.h5", "one"), wanted)
    np.testing.assert_array_equal(read(tmp_path / "x.h5", "none"), np.full((9, 3), 4, "i4"))


def test_keys_name_datasets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.nc", "w") as file:
        file.create_dataset("a/b/x", data=X)
        file.create_dataset("y", data=X * 2)
        file.create_dataset("number", data=3.0)
    np.testing.assert_array_equal(read(tmp_path / "x.nc", "/a/b/x"), X)
    with pytest.raises(SourceError, match=r"holds arrays by name(.|\n)*'a/b/x', 'number', 'y'"):
        fc.open(tmp_path / "x.nc")
    for key in ("z", "a", "a/b", "a/../y", "y/x", "", "."):
        with pytest.raises(SourceError, match=r"x\.nc"):
            fc.open(tmp_path / "x.nc", key=key)
    with pytest.raises(SourceError, match="no axis of records"):
        fc.open(tmp_path / "x.nc", key="number")
    for bad in (3, b"y", "a\0b", "x" * 5000):
        with pytest.raises(SpecError, match="key="):
            fc.open(tmp_path / "x.nc", key=bad)  # type: ignore[arg-type]
    for options in ({"dtype": "f4"}, {"shape": (5,)}, {"offset": 3}):
        with pytest.raises(SpecError, match="says"):
            fc.open(tmp_path / "x.nc", key="y", **options)  # type: ignore[arg-type]


# -- what is elsewhere, or not plain --------------------------------------------------------------------------


def _external(file: Any, folder: Path) -> None:
    (folder / "secret").write_bytes(b"s" * 100)
    file.create_dataset("x", (10,), "u1", external=[(str(folder / "secret"), 0, 100)])


def _virtual(file: Any, folder: Path) -> None:
    made(folder / "other.h5")
    layout = h5py.VirtualLayout(shape=X.shape, dtype="f4")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "x", shape=X.shape)
    file.create_virtual_dataset("x", layout)


def _linked(file: Any, folder: Path) -> None:
    made(folder / "other.h5")
    file["x"] = h5py.ExternalLink(str(folder / "other.h5"), "x")


def _soft(file: Any, _: Path) -> None:
    file.create_dataset("y", data=X)
    file["x"] = h5py.SoftLink("/y")


def _compact(file: Any, _: Path) -> None:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((4,)), dcpl=plist)


def _odd_float(file: Any, _: Path) -> None:
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(100)
    h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((4,)))


ELSEWHERE: dict[str, tuple[Callable[[Any, Path], object], str]] = {
    "external storage": (_external, "external storage"),
    "virtual": (_virtual, "virtual"),
    "external link": (_linked, "link"),
    "soft link": (_soft, "link"),
    "compact": (_compact, "compact"),
    "lzf": (lambda file, _: file.create_dataset("x", data=X, chunks=(9, 5), compression="lzf"), "filter"),
    "scale and offset": (lambda file, _: file.create_dataset("x", data=X, chunks=(9, 5), scaleoffset=2), "filter"),
    "text": (lambda file, _: file.create_dataset("x", data=["a", "b"]), "plain numbers"),
    "structures": (lambda file, _: file.create_dataset("x", data=np.zeros(3, [("a", "f4"), ("b", "i4")])), "plain"),
    "complex numbers": (lambda file, _: file.create_dataset("x", data=X.astype("c8")), "plain numbers"),
    "ragged": (lambda file, _: file.create_dataset("x", (3,), h5py.vlen_dtype(np.int32)), "plain numbers"),
    "nothing": (lambda file, _: file.create_dataset("x", data=h5py.Empty("f4")), "no data"),
    "floats of their own": (_odd_float, "stored in a way|plain numbers"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_elsewhere_or_not_plain_is_refused(tmp_path: Path, name: str) -> None:
    make, words = ELSEWHERE[name]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        make(file, tmp_path)
    with pytest.raises(SourceError, match=words) as caught:
        fc.open(tmp_path / "x.h5", key="x")
    assert "x.h5" in str(caught.value)


def test_a_user_block_and_other_files_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file.create_dataset("x", data=X)
    with pytest.raises(SourceError):
        fc.open(tmp_path / "x.h5")
    for data, words in (
        (b"CDF\x01" + bytes(40), "NetCDF-3"),
        (b"", "no HDF5"),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "damaged"),
    ):
        (tmp_path / "y.nc").write_bytes(data)
        with pytest.raises(SourceError, match=words):
            fc.open(tmp_path / "y.nc")


def test_petabytes_with_nothing_inside_take_no_memory(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (1 << 48, 4), "f4", chunks=(1 << 12, 4))
    x = fc.open(tmp_path / "x.h5")
    tracemalloc.start()
    np.testing.assert_array_equal(x[1 << 47 : (1 << 47) + 5].resolve(progress=False), np.zeros((5, 4)))
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_rows_of_chunks_count_in_the_plan(tmp_path: Path) -> None:
    path = made(tmp_path / "x.h5", np.zeros((4096, 256), "f4"), chunks=(4096, 256))
    with pytest.raises(PlanError, match=r"open \(chunks\)"):
        fc.open(path).sum(axis=0).plan(memory="4MiB")


# -- damage --------------------------------------------------------------------------------------------------


def place_of(path: Path, chunk: int) -> tuple[int, int]:
    with h5py.File(path) as file:
        info = file["x"].id.get_chunk_info(chunk)
        return info.byte_offset, info.size


@pytest.mark.parametrize("options", ["gzip", "all filters", "checked"])
def test_damaged_chunks_are_named(tmp_path: Path, options: str) -> None:
    path = made(tmp_path / "x.h5", **OPTIONS[options])
    begin, size = place_of(path, 3)
    with path.open("r+b") as file:
        file.seek(begin + size // 2)
        file.write(os.urandom(8))
    with pytest.raises(SourceError, match="chunk") as caught:
        read(path)
    assert caught.value.records is not None
    assert "x.h5" in str(caught.value)


def test_a_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = file.create_dataset("x", (1000, 5), "f4", chunks=(100, 5), compression="gzip")
        x[...] = 1
        x.id.write_direct_chunk((300, 0), zlib.compress(bytes(64 << 20)))
    source = fc.open(tmp_path / "x.h5")
    tracemalloc.start()
    with pytest.raises(SourceError, match=r"chunk \(3, 0\)(.|\n)*more than"):
        source.resolve(progress=False)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_chunks_whose_filters_were_left_out_are_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = file.create_dataset("x", (200, 5), "f4", chunks=(100, 5), compression="gzip", shuffle=True)
        x[...] = 1
        x.id.write_direct_chunk((100, 0), X[:100].tobytes(), filter_mask=3)
    np.testing.assert_array_equal(read(tmp_path / "x.h5")[100:], X[:100])


def test_files_that_are_cut_off_or_change_are_refused(tmp_path: Path) -> None:
    for options in ({}, {"chunks": (100, 5)}):
        path = made(tmp_path / "x.h5", **options)
        x = fc.open(path)
        with path.open("r+b") as file:
            file.seek(0, 2)
            file.write(b"more")
        with pytest.raises(SourceError, match="changed"):
            x.resolve(progress=False)
        path = made(tmp_path / "y.h5", **options)
        os.truncate(path, path.stat().st_size - 5000)
        with pytest.raises(SourceError, match=r"y\.h5"):
            fc.open(path)


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 3000), bits=st.integers(1, 255))
def test_a_changed_byte_is_an_error_or_means_nothing(
    tmp_path_factory: pytest.TempPathFactory, at: int, bits: int
) -> None:
    """Metadata is foreign: whatever a byte says, there is an answer of the right shape, or an error of ours."""
    path = made(tmp_path_factory.mktemp("h") / "x.h5", X[:50], chunks=(20, 2), compression="gzip")
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= bits
    path.write_bytes(data)
    try:
        got = fc.open(path, key="x")
        if got.spec.full_shape == (50, 5):
            got.resolve(progress=False, memory="64MiB")
    except (SourceError, PlanError):
        pass


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200), mask=st.integers(0, 7))
def test_filters_end_with_the_bytes_or_an_error(data: bytes, mask: int) -> None:
    with contextlib.suppress(ChunkError):
        assert len(undone(data, (("shuffle", 4), ("deflate", 6), ("fletcher32", 0)), mask, 40)) == 40


@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 8, 16])
def test_shuffled_bytes_are_put_together_again(itemsize: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_WORDS", 7)
    data = np.random.default_rng(1).integers(0, 256, 50 * itemsize + itemsize - 1, "u1")
    whole = data[: 50 * itemsize].reshape(50, itemsize)
    stored = whole.T.tobytes() + data[50 * itemsize :].tobytes()
    assert bytes(undone(stored, (("shuffle", itemsize),), 0, len(data))) == data.tobytes()


def test_checksums_are_those_of_the_format() -> None:
    # h5py has computed those of the files above; here is what folding makes of sums of 65,535.
    assert [fletcher32(data) for data in (b"", b"\0\0", b"\xff\xff")] == [0, 0, 0xFFFFFFFF]
    assert checksum(b"") == 0xDEADBEEF
    assert checksum(b"Four score and seven years ago") == 0x17770551


# -- results -------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(0, 9), min_size=0, max_size=4),
    dtype=st.sampled_from(["?", "i1", "u2", "i8", "f2", "f4", "f8"]),
    key=st.lists(st.text(st.characters(categories=("L", "N")), min_size=1, max_size=9), min_size=1, max_size=4),
)
def test_h5py_reads_what_is_written(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], dtype: str, key: list[str]
) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    path, name = tmp_path_factory.mktemp("h") / "y.h5", "/".join(key)
    text = header(name, array.dtype, array.shape)
    assert len(text) % 512 == 0
    assert len(text) == len(header(name, array.dtype, tuple(size + 1000 for size in shape)))
    path.write_bytes(text + array.tobytes())
    with h5py.File(path, "r") as file:
        np.testing.assert_array_equal(file[name][...], array, strict=True)
        assert file[name].chunks is None


def test_results_have_keys_and_the_same_bytes(tmp_path: Path) -> None:
    for name, batch in (("a", 1 << 20), ("b", 777)):
        job = fc.source(X) * 2 >> fc.save(tmp_path / f"{name}.h5", key="g/x")
        fc.run(job, strategy=fc.Strategy(batch_bytes=batch), progress=False)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    np.testing.assert_array_equal(read(tmp_path / "a.h5"), X * 2)
    unknown = fc.source(X)[fc.source(X)[:, 0] > 0]
    fc.run(unknown >> fc.save(tmp_path / "u.h5"), progress=False)
    np.testing.assert_array_equal(read(tmp_path / "u.h5", "data"), X[X[:, 0] > 0])
    for bad in ("", "/x", "a//b", "..", "a/../b", "x" * 2000, 3):
        with pytest.raises(SpecError, match="key"):
            fc.save(tmp_path / "y.h5", key=bad)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="bfloat16"):
        fc.source(X).astype("bfloat16") >> fc.save(tmp_path / "y.h5")
    with pytest.raises(SpecError, match="read, and not written"):
        fc.save(tmp_path / "y.nc")
    with pytest.raises(SpecError, match="key="):
        fc.save(tmp_path / "y.npy", key="x")


@pytest.mark.parametrize("name", ["y.h5", "y.safetensors"])
def test_a_job_that_is_frozen_goes_on_to_the_same_bytes(tmp_path: Path, name: str) -> None:
    source = made(tmp_path / "x.h5", **OPTIONS["all filters"])
    job = fc.open(source) * 2
    whole = fc.run(job >> fc.save(tmp_path / f"whole-{name}", key="x"), progress=False).value
    options: dict[str, Any] = {"strategy": fc.Strategy(batch_bytes=2000), "progress": False}
    with pytest.raises(fc.RunError):
        (job >> fc.save(tmp_path / name, key="x")).run(
            checkpoint=tmp_path / "kept", on_batch=lambda run: run.progress.items > 400 and run.freeze(), **options
        )
    assert not (tmp_path / name).exists()
    fc.thaw(tmp_path / "kept").resolve(progress=False)
    assert (tmp_path / name).read_bytes() == Path(whole).read_bytes()


KEEPING_AN_ERROR = """
import ctypes, sys
from flowcompute.files import FILES, FileView
from flowcompute.sources.hdf5 import _h5py
try:
    _h5py.describe(FileView(FILES, FILES.open_read(sys.argv[1]), raises=False), None)
except OSError as error:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(error))
"""


def test_an_error_that_is_kept_does_not_kill_the_interpreter(tmp_path: Path) -> None:
    # HDF5 frees what opens a file object after the interpreter has ended, if frames of h5py still hold it.
    path = made(tmp_path / "x.h5")
    os.truncate(path, 300)
    ended = subprocess.run([sys.executable, "-c", KEEPING_AN_ERROR, str(path)], timeout=600, check=False)
    assert ended.returncode == 0
