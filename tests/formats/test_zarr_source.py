"""Zarr arrays as streams: what zarr has written, and what nobody should have."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import CheckpointError, PlanError, SourceError, SpecError
from flowcompute.sources.chunked import ChunkError
from flowcompute.sources.zarr.codecs import zstd_size

X = np.random.default_rng(7).standard_normal((1003, 5)).astype("f4")
CODECS: dict[str, dict[str, Any]] = {
    "zstd": {},
    "none": {"compressors": None},
    "gzip": {"compressors": zarr.codecs.GzipCodec()},
    "blosc": {"compressors": zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle")},
    "blosc of zstd": {"compressors": zarr.codecs.BloscCodec(cname="zstd")},
    "checked": {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
    "big endian": {"serializer": zarr.codecs.BytesCodec(endian="big")},
    "one folder": {"chunk_key_encoding": {"name": "default", "separator": "."}},
    "keys of version 2": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    "version 2": {"zarr_format": 2},
    "version 2, none": {"zarr_format": 2, "compressors": None},
    "version 2, zlib": {"zarr_format": 2, "compressors": numcodecs.Zlib()},
    "version 2, lz4": {"zarr_format": 2, "compressors": numcodecs.LZ4()},
    "version 2, blosc": {"zarr_format": 2, "compressors": numcodecs.Blosc()},
}
CHUNKS: dict[str, dict[str, Any]] = {
    "whole items": {"chunks": (100, 5)},
    "parts of items": {"chunks": (97, 2)},
    "one chunk": {"chunks": (2000, 9)},
    "shards": {"chunks": (50, 5), "shards": (200, 5)},
    "shards of parts": {"chunks": (17, 2), "shards": (170, 4)},
}


def made(path: Path, array: np.ndarray = X, **options: Any) -> Path:
    zarr.create_array(path, data=array, overwrite=True, **options)
    return path


def read(path: Path, **options: Any) -> np.ndarray:
    return np.asarray(fc.open(path).resolve(progress=False, **options))


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("codec", CODECS)
def test_what_zarr_writes_is_read_bit_by_bit(tmp_path: Path, codec: str, chunks: str) -> None:
    if "version 2" in codec and "shards" in chunks:
        return
    path = made(tmp_path / "x.zarr", **CODECS[codec], **CHUNKS[chunks])
    np.testing.assert_array_equal(read(path), X, strict=True)
    small = fc.Strategy(batch_bytes=20 * 33)
    total = fc.run(fc.open(path).sum(axis=0), strategy=small, progress=False).value
    assert total.tobytes() == fc.run(fc.source(X).sum(axis=0), progress=False).value.tobytes()


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    dtype=st.sampled_from(["?", "i1", "u2", "i8", "f2", "f8"]),
    sharded=st.booleans(),
)
def test_any_array_is_read_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], seed: int, dtype: str, sharded: bool
) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 2, shape).astype(dtype)
    chunk = tuple(int(rng.integers(1, max(2, size + 2))) for size in shape)
    shards = {"shards": tuple(int(rng.integers(1, 4)) * part for part in chunk)} if sharded else {}
    path = made(tmp_path_factory.mktemp("z") / "x.zarr", array, chunks=chunk, **shards)
    np.testing.assert_array_equal(read(path), array, strict=True)


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_that_are_not_there_have_the_fill_value(tmp_path: Path, version: int) -> None:
    for fill in (0, -3.5, float("nan"), float("-inf")):
        path = tmp_path / "x.zarr"
        array = zarr.create_array(
            path, shape=(25, 3), chunks=(10, 2), dtype="f4", fill_value=fill, overwrite=True, zarr_format=version
        )
        array[10:12] = 7
        np.testing.assert_array_equal(read(path), array[...])
    sharded = zarr.create_array(
        tmp_path / "s.zarr", shape=(40, 3), chunks=(5, 3), shards=(20, 3), dtype="i2", fill_value=9
    )
    sharded[7] = 1
    np.testing.assert_array_equal(read(tmp_path / "s.zarr"), sharded[...])


def test_arrays_in_groups_have_keys(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_group("images").create_array("train", data=X, chunks=(100, 5))
    np.testing.assert_array_equal(
        np.asarray(fc.open(tmp_path / "g.zarr", key="images/train").resolve(progress=False)), X
    )
    with pytest.raises(SourceError, match=r"it is a group(.|\n)*in it are images"):
        fc.open(tmp_path / "g.zarr")
    with pytest.raises(SourceError, match="train"):
        fc.open(tmp_path / "g.zarr", key="images")
    (tmp_path / "secret").mkdir()
    made(tmp_path / "secret" / "x.zarr")
    for key in ("../secret/x.zarr", "images/../../secret/x.zarr", "", ".", "images//train"):
        with pytest.raises(SourceError, match="no array has the key"):
            fc.open(tmp_path / "g.zarr", key=key)
    with pytest.raises(SpecError, match="cannot use this as key="):
        fc.open(tmp_path / "g.zarr", key="a\0b")
    (tmp_path / "g.zarr" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(SourceError, match="link"):
        fc.open(tmp_path / "g.zarr", key="link/x.zarr")
    with pytest.raises(SourceError):
        fc.open(tmp_path / "g.zarr", key="none")


def test_arguments_that_the_metadata_answers_are_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "x.zarr", chunks=(100, 5))
    for options in ({"dtype": "f4"}, {"shape": (5,)}, {"offset": 3}):
        with pytest.raises(SpecError, match="its metadata says"):
            fc.open(path, **options)  # type: ignore[arg-type]
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(SpecError, match="key="):
        fc.open(tmp_path / "x.npy", key="x")
    with pytest.raises(SourceError, match="tables and arrays, or several arrays in chunks"):
        fc.open([path, path])
    with pytest.raises(SourceError, match="No such file"):
        fc.open(tmp_path / "none.zarr")
    (tmp_path / "file.zarr").write_bytes(b"x")
    with pytest.raises(SourceError, match="it is no folder"):
        fc.open(tmp_path / "file.zarr")


# -- memory ----------------------------------------------------------------------------------------------


def test_rows_of_chunks_count_in_the_plan(tmp_path: Path) -> None:
    array = np.zeros((4096, 256), "f4")
    path = made(tmp_path / "x.zarr", array, chunks=(4096, 256))
    lines = dict(fc.open(path).sum(axis=0).plan(memory="64MiB").memory.items)
    assert lines["open (chunks)"] >= array.nbytes
    with pytest.raises(PlanError, match=r"open \(chunks\)"):
        fc.open(path).sum(axis=0).plan(memory="4MiB")


def test_an_array_of_petabytes_with_nothing_inside_takes_no_memory(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", shape=(1 << 50, 4), chunks=(1 << 12, 4), dtype="f4")
    x = fc.open(tmp_path / "x.zarr")
    assert x.spec.length == 1 << 50
    tracemalloc.start()
    np.testing.assert_array_equal(x[1 << 49 : (1 << 49) + 5].resolve(progress=False), np.zeros((5, 4)))
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("codec", ["zstd", "gzip", "blosc", "lz4"])
def test_a_bomb_is_refused_before_it_grows(tmp_path: Path, codec: str) -> None:
    path, zeros = made(tmp_path / "x.zarr", chunks=(1003, 5), **CODECS["version 2, none"]), bytes(64 << 20)
    encoders: dict[str, Callable[[bytes], bytes]] = {
        "zstd": numcodecs.Zstd().encode, "gzip": gzip.compress,
        "blosc": numcodecs.Blosc().encode, "lz4": numcodecs.LZ4().encode,
    }  # fmt: skip
    bomb = bytes(encoders[codec](zeros))
    change(path / ".zarray", compressor={"id": codec})
    (path / "0.0").write_bytes(bomb)
    source = fc.open(path)
    del zeros
    tracemalloc.start()
    with pytest.raises(SourceError, match=r"chunk \(0, 0\)(.|\n)*expected"):
        source.resolve(progress=False)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


# -- what is damaged, or meant badly ------------------------------------------------------------------------


def change(path: Path, **fields: Any) -> None:
    data = json.loads(path.read_bytes())
    path.write_text(json.dumps({**data, **fields}))


BAD_METADATA: dict[str, dict[str, Any]] = {
    "another version": {"zarr_format": 4},
    "a float as size": {"shape": [1003.0, 5]},
    "a negative size": {"shape": [-1, 5]},
    "a huge size": {"shape": [1 << 63, 5]},
    "a huge product": {"shape": [1 << 40, 1 << 40]},
    "no axes": {"shape": []},
    "too many axes": {"shape": [1] * 100},
    "another type": {"data_type": "string"},
    "complex numbers": {"data_type": "complex64"},
    "a type with parts": {"data_type": {"name": "struct"}},
    "another grid": {"chunk_grid": {"name": "rectangular"}},
    "chunks of nothing": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 5]}}},
    "chunks of other axes": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5]}}},
    "huge chunks": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1 << 40, 5]}}},
    "no codecs": {"codecs": []},
    "a foreign codec": {"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]},
    "two compressors": {"codecs": [{"name": "bytes"}, {"name": "zstd"}, {"name": "gzip"}]},
    "a compressor before bytes": {"codecs": [{"name": "zstd"}, {"name": "bytes"}]},
    "a transposition": {"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}]},
    "a codec that is no mapping": {"codecs": ["bytes"]},
    "transformers": {"storage_transformers": [{"name": "x"}]},
    "another separator": {"chunk_key_encoding": {"name": "default", "configuration": {"separator": ".."}}},
    "a fill of words": {"fill_value": "many"},
    "a fill of a list": {"fill_value": [1, 2]},
}


@pytest.mark.parametrize("name", BAD_METADATA)
def test_metadata_that_is_not_allowed_is_refused(tmp_path: Path, name: str) -> None:
    path = made(tmp_path / "x.zarr", chunks=(100, 5))
    change(path / "zarr.json", **BAD_METADATA[name])
    with pytest.raises(SourceError, match=r"x\.zarr"):
        fc.open(path)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[" * 100_000, b"null", b"[]", b'{"zarr_format": 1e999}', b"\xff\xfe", b'"' + b"x" * (17 << 20)],
)
def test_metadata_that_is_none_is_refused(tmp_path: Path, text: bytes) -> None:
    path = made(tmp_path / "x.zarr", chunks=(100, 5))
    (path / "zarr.json").write_bytes(text)
    with pytest.raises(SourceError, match=r"x\.zarr"):
        fc.open(path)


def chunk_of(path: Path) -> Path:
    return path / "c" / "3" / "0"


@pytest.mark.parametrize("codec", ["zstd", "none", "gzip", "blosc", "checked"])
def test_damaged_chunks_are_named(tmp_path: Path, codec: str) -> None:
    path = made(tmp_path / "x.zarr", chunks=(100, 5), **CODECS[codec])
    whole = chunk_of(path).read_bytes()
    damages = {
        "cut off": whole[: len(whole) // 2],
        "empty": b"",
        "longer": whole + b"123456789",
        "noise": os.urandom(len(whole)),
    }
    if codec == "none":
        del damages["noise"]
    for damage, data in damages.items():
        chunk_of(path).write_bytes(data)
        try:
            got = read(path)
        except SourceError as error:
            for word in ("chunk (3, 0)", "x.zarr", "records"):
                assert word in str(error), (damage, error)
            assert error.records == (300, 400)
        else:
            # Trailing bytes behind a frame mean nothing to its decoder.
            assert damage == "longer"
            np.testing.assert_array_equal(got, X)


def test_a_byte_that_is_no_bool_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "x.zarr", X > 0, chunks=(100, 5), compressors=None)
    chunk_of(path).write_bytes(b"\x02" * 500)
    with pytest.raises(SourceError, match="not a bool"):
        read(path)


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(2000))
    path = made(tmp_path / "x.zarr", chunks=(100, 5), compressors=None)
    chunk_of(path).unlink()
    chunk_of(path).symlink_to(secret)
    with pytest.raises(SourceError, match="link"):
        fc.open(path)
    path = made(tmp_path / "y.zarr", chunks=(100, 5), compressors=None)
    shutil.move(path / "c", tmp_path / "moved")
    (path / "c").symlink_to(tmp_path / "moved")
    with pytest.raises(SourceError, match="link"):
        fc.open(path)


def test_a_link_that_appears_later_is_not_followed(tmp_path: Path) -> None:
    path = made(tmp_path / "x.zarr", chunks=(100, 5), compressors=None)
    source = fc.open(path)
    reader = source.open()
    (tmp_path / "secret").write_bytes(bytes(2000))
    os.utime(tmp_path / "secret", ns=(0, 0))
    chunk_of(path).unlink()
    chunk_of(path).symlink_to(tmp_path / "secret")
    with pytest.raises(SourceError, match="link"):
        reader.read(np.empty((1003, 5), "f4"))
    reader.close()


@pytest.mark.parametrize("where", ["behind", "before the end", "short", "checksum"])
def test_damaged_shards_are_named(tmp_path: Path, where: str) -> None:
    path = made(tmp_path / "x.zarr", chunks=(50, 5), shards=(200, 5))
    shard = path / "c" / "1" / "0"
    data = bytearray(shard.read_bytes())
    if where == "short":
        data = data[:20]
    elif where == "checksum":
        data[-1] ^= 1
    else:
        # Its index: four offsets and lengths, and a checksum.
        offset, size = (1 << 40, 10) if where == "behind" else (0, 1 << 60)
        data[-68:-52] = struct.pack("<QQ", offset, size)
        data[-4:] = struct.pack("<I", google_crc32c.value(bytes(data[-68:-4])))
    shard.write_bytes(data)
    with pytest.raises(SourceError, match=r"chunk \(4, 0\)(.|\n)*shard|index|checksum"):
        read(path)


def test_an_array_that_changes_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "x.zarr", chunks=(100, 5), compressors=None)
    old = [*path.rglob("*")]
    for one in old:
        os.utime(one, (1e9, 1e9))
    x = fc.open(path)
    chunk_of(path).write_bytes(bytes(2000))
    with pytest.raises(SourceError, match="changed"):
        x.resolve(progress=False)
    os.utime(chunk_of(path), (1e9, 1e9))
    np.testing.assert_array_equal(np.asarray(x.resolve(progress=False))[300:400], 0)
    change(path / "zarr.json", attributes={"a": 1})
    with pytest.raises(SourceError, match="changed"):
        x.resolve(progress=False)


def test_a_job_goes_on_only_with_the_same_array(tmp_path: Path) -> None:
    path = made(tmp_path / "x.zarr", chunks=(100, 5))
    job = fc.open(path) * 2 >> fc.save(tmp_path / "y.npy")
    with pytest.raises(fc.RunError):
        job.run(
            checkpoint=tmp_path / "kept", on_batch=lambda run: run.freeze(), progress=False,
            strategy=fc.Strategy(batch_bytes=2000),
        )  # fmt: skip
    then = chunk_of(path).stat().st_mtime_ns
    os.utime(chunk_of(path))
    with pytest.raises(CheckpointError, match="chunks have changed"):
        fc.thaw(tmp_path / "kept").resolve(progress=False)
    os.utime(chunk_of(path), ns=(then, then))
    fc.thaw(tmp_path / "kept").resolve(progress=False)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), X * 2)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=40))
def test_sizes_of_frames_are_read_within_their_bytes(data: bytes) -> None:
    try:
        size = zstd_size(b"\x28\xb5\x2f\xfd" + data)
    except ChunkError:
        return
    assert size is None or size >= 0


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_791, 65_792, 1 << 20])
def test_sizes_of_frames_are_those_of_their_contents(size: int) -> None:
    assert zstd_size(bytes(numcodecs.Zstd().encode(bytes(size)))) in (size, None)
