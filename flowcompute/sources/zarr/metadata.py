"""Metadata of Zarr arrays, version 3 and 2: read by our own hand, by type and range, and by lists of what is allowed.

Sources: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html and .../v2/v2.0.html.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from flowcompute.elements import MOST, MOST_AXES
from flowcompute.files import Files, ForeignJsonError, Maybe, expect, read_json_file
from flowcompute.imports import dataclass
from flowcompute.sources.zarr.codecs import CHECKSUM, COMPRESSORS, Codecs

V3, V2 = "zarr.json", ".zarray"
V2_GROUP = ".zgroup"
SHOWN_KEYS = 20
"""Names in a group that are told."""

LIMIT_BYTES = 16 << 20
"""Largest file of metadata that is read. Attributes of users are in it."""

MOST_CHUNK_BYTES = 1 << 34
MOST_INDEX_BYTES = 1 << 26
"""Bytes of the index of a shard, in which 16 stand for each chunk."""

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"
)  # fmt: skip
_V2_TYPE = re.compile(r"([<>|])([biuf])(1|2|4|8)")
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_V2_CODECS = {"blosc": "blosc", "gzip": "gzip", "lz4": "lz4", "zlib": "zlib", "zstd": "zstd"}


@dataclass(frozen=True)
class Sharding:
    """Chunks within a chunk: their index, and whether it stands at the end.

    Attributes:
        shard: shape of the outer chunks, each of which is a file.
        index: codecs of the index.
        at_end: whether the index stands behind the chunks.
    """

    shard: tuple[int, ...]
    index: Codecs
    at_end: bool

    def count(self, chunk: tuple[int, ...]) -> int:
        """Return the chunks of a shard."""
        return math.prod(outer // inner for outer, inner in zip(self.shard, chunk, strict=True))


@dataclass(frozen=True)
class ZarrArray:
    """Zarr array, as its metadata says.

    Attributes:
        shape: of the array.
        chunk: shape of what is decoded at a time.
        dtype: stored dtype, with its byte order.
        codecs: what decodes a chunk.
        fill: number of a chunk that is not there.
        before, separator: what names of files of chunks are made of.
        sharding: where a file has several chunks; otherwise None.
    """

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: np.dtype
    codecs: Codecs
    fill: Any
    before: str
    separator: str
    sharding: Sharding | None = None

    @property
    def file_chunk(self) -> tuple[int, ...]:
        """Shape of what a file holds."""
        return self.chunk if self.sharding is None else self.sharding.shard

    def key(self, index: tuple[int, ...]) -> str:
        """Return the path of a file below the array."""
        numbers = [str(i) for i in index]
        return self.separator.join([self.before, *numbers] if self.before else numbers or ["0"])

    def number(self, index: tuple[int, ...]) -> int:
        """Return the number of a file in C order of the indices."""
        number = 0
        for i, size, part in zip(index, self.shape, self.file_chunk, strict=True):
            number = number * -(-size // part) + i
        return number

    def number_of(self, path: str) -> int | None:
        """Return the number of the file of a path below the array; None where it holds no chunk."""
        parts = path.split(self.separator)
        if self.before:
            parts = parts[1:]
        if len(parts) != len(self.shape) or not all(map(_NUMBER.fullmatch, parts)):
            return None
        index = tuple(map(int, parts))
        across = zip(index, self.shape, self.file_chunk, strict=True)
        inside = all(i * part < size for i, size, part in across)
        return self.number(index) if inside and self.key(index) == path else None


def is_zarr(names: list[str]) -> bool:
    """Check whether the names in a folder are those of a Zarr array or group."""
    return any(one in names for one in (V3, V2, V2_GROUP))


def read_metadata(files: Files, folder: str) -> tuple[ZarrArray, str] | list[str]:
    """Return an array and the name of its metadata's file; of a group, the names of the first folders in it.

    Raises:
        OSError: if it cannot be read.
        ForeignJsonError: if it is no metadata, or asks for what is not allowed.
    """
    for name, read in ((V3, _v3), (V2, _v2)):
        try:
            made = read_json_file(os.path.join(folder, name), read, limit_bytes=LIMIT_BYTES, files=files)
        except FileNotFoundError:
            continue
        if made is not None:
            return made, name
        break
    names = files.list_folder(folder)
    if not is_zarr(names):
        raise ForeignJsonError(f"it has neither {V3} nor {V2}")
    inside = (name for name in names if not name.startswith(".") and files.is_folder(os.path.join(folder, name)))
    return list(islice(inside, SHOWN_KEYS + 1))


# -- version 3 -------------------------------------------------------------------------------------------


def _v3(data: Any) -> ZarrArray | None:
    """Read `zarr.json`; None of a group."""
    expect(data, {"zarr_format": int, "node_type": ("array", "group")})
    if data["zarr_format"] != 3:
        raise ForeignJsonError(f"it is of version {data['zarr_format']}, and 2 and 3 are read")
    if data["node_type"] == "group":
        return None
    expect(data, {"shape": [int], "chunk_grid": {"name": ("regular",)}, "codecs": [dict]})
    shape = _sizes(data["shape"], "shape", least=0)
    expect(data["chunk_grid"], {"configuration": {"chunk_shape": [int]}}, "chunk_grid")
    chunk = _sizes(data["chunk_grid"]["configuration"]["chunk_shape"], "chunk_shape", axes=len(shape))
    name = data.get("data_type")
    if name not in _NAMES:
        raise ForeignJsonError(f"its type {str(name)[:60]!r} is none of {', '.join(_NAMES)}")
    if data.get("storage_transformers"):
        raise ForeignJsonError("it has storage transformers, which are not read")
    encoding = data.get("chunk_key_encoding", {"name": "default"})
    expect(encoding, {"name": ("default", "v2")}, "chunk_key_encoding")
    is_v2 = encoding["name"] == "v2"
    settings = encoding.get("configuration") or {}
    expect(settings, {}, "chunk_key_encoding.configuration")
    separator = settings.get("separator", "." if is_v2 else "/")
    expect(separator, (".", "/"), "separator")
    array = ZarrArray(
        shape, chunk, np.dtype(name), Codecs(), _fill(data.get("fill_value"), np.dtype(name)), "" if is_v2 else "c",
        separator,
    )  # fmt: skip
    return _with_codecs(array, data["codecs"], may_shard=True)


def _with_codecs(array: ZarrArray, chain: list[Any], *, may_shard: bool) -> ZarrArray:
    steps: list[str] = []
    seen_bytes = False
    for codec in chain:
        expect(codec, {"name": str}, "a codec")
        name, settings = codec["name"], codec.get("configuration") or {}
        expect(settings, {}, f"the codec {name[:60]}")
        if name == "bytes" and not seen_bytes:
            seen_bytes = True
            big = settings.get("endian", "little") == "big"
            array = replace(array, dtype=array.dtype.newbyteorder(">" if big else "<"))
        elif name == "sharding_indexed" and not seen_bytes and may_shard and len(chain) == 1:
            return _with_shards(array, settings)
        elif name == "transpose" and not seen_bytes and settings.get("order") == list(range(len(array.shape))):
            continue
        elif seen_bytes and (name == CHECKSUM or (name in COMPRESSORS and not set(steps) & set(COMPRESSORS))):
            steps.append(name)
        else:
            raise ForeignJsonError(
                f"its codec {name[:60]!r} is not decoded here; those are bytes, sharding_indexed, {CHECKSUM}, and one "
                f"of {', '.join(COMPRESSORS)}"
            )
    if not seen_bytes:
        raise ForeignJsonError("it has no codec that makes bytes of numbers")
    return _checked(replace(array, codecs=Codecs(tuple(steps))))


def _with_shards(array: ZarrArray, settings: Mapping[str, Any]) -> ZarrArray:
    shape = {"chunk_shape": [int], "codecs": [dict], "index_codecs": [dict]}
    expect(settings, shape, "sharding_indexed")
    inner = _sizes(settings["chunk_shape"], "chunk_shape of shards", axes=len(array.shape))
    if any(outer % size for outer, size in zip(array.chunk, inner, strict=True)):
        raise ForeignJsonError("its shards are no multiples of their chunks")
    where = settings.get("index_location", "end")
    expect(where, ("start", "end"), "index_location")
    names = [codec.get("name") for codec in settings["index_codecs"]]
    little = (settings["index_codecs"][0].get("configuration") or {}).get("endian", "little") if names else ""
    if names not in (["bytes"], ["bytes", CHECKSUM]) or little != "little":
        raise ForeignJsonError(f"the index of its shards has codecs {str(names)[:60]}")
    sharding = Sharding(array.chunk, Codecs(tuple(names[1:])), where == "end")
    made = _with_codecs(replace(array, chunk=inner), settings["codecs"], may_shard=False)
    if sharding.count(inner) * 16 > MOST_INDEX_BYTES:
        raise ForeignJsonError(f"the index of a shard has more than {MOST_INDEX_BYTES:,} bytes")
    return replace(made, sharding=sharding)


# -- version 2 -------------------------------------------------------------------------------------------


def _v2(data: Any) -> ZarrArray:
    expect(data, {"zarr_format": int, "shape": [int], "chunks": [int], "dtype": str, "order": ("C", "F")})
    shape = _sizes(data["shape"], "shape", least=0)
    chunk = _sizes(data["chunks"], "chunks", axes=len(shape))
    code = _V2_TYPE.fullmatch(data["dtype"])
    if code is None:
        raise ForeignJsonError(f"its type {data['dtype'][:60]!r} is none of plain numbers")
    try:
        dtype = np.dtype(data["dtype"])
    except TypeError:
        raise ForeignJsonError(f"its type {data['dtype'][:60]!r} is none of plain numbers") from None
    if dtype.name not in _NAMES:
        raise ForeignJsonError(f"its type {data['dtype'][:60]!r} is none of {', '.join(_NAMES)}")
    if data["order"] != "C" and len(shape) > 1:
        raise ForeignJsonError("the numbers of its chunks are in Fortran order")
    if data.get("filters"):
        raise ForeignJsonError("it has filters, which are not decoded here")
    expect(data.get("compressor"), Maybe({"id": str}), "compressor")
    codec = None if data.get("compressor") is None else data["compressor"]["id"]
    if codec is not None and codec not in _V2_CODECS:
        raise ForeignJsonError(f"its compressor {codec[:60]!r} is none of {', '.join(_V2_CODECS)}")
    separator = data.get("dimension_separator", ".")
    expect(separator, (".", "/"), "dimension_separator")
    steps = () if codec is None else (_V2_CODECS[codec],)
    return _checked(ZarrArray(shape, chunk, dtype, Codecs(steps), _fill(data.get("fill_value"), dtype), "", separator))


# -- both ------------------------------------------------------------------------------------------------


def _sizes(values: list[int], what: str, *, least: int = 1, axes: int | None = None) -> tuple[int, ...]:
    if len(values) > MOST_AXES or (axes is not None and len(values) != axes):
        raise ForeignJsonError(f"its {what} has {len(values)} axes")
    if any(not least <= value < MOST for value in values):
        raise ForeignJsonError(f"its {what} has a size below {least}, or of more than 63 bits")
    return tuple(values)


def _checked(array: ZarrArray) -> ZarrArray:
    if math.prod(array.shape) * array.dtype.itemsize >= MOST:
        raise ForeignJsonError("it has 2**63 bytes or more")
    if math.prod(array.chunk) * array.dtype.itemsize > MOST_CHUNK_BYTES:
        raise ForeignJsonError(f"a chunk of it has more than {MOST_CHUNK_BYTES:,} bytes decoded")
    return array


_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _fill(value: Any, dtype: np.dtype) -> Any:
    """Return the number of missing chunks as a NumPy scalar."""
    native = dtype.newbyteorder("=")
    if value is None:
        return native.type(0)
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value) and native.kind == "f":
        return np.array(int(value, 16), f"u{native.itemsize}").view(native)[()]
    if isinstance(value, str) and value in _SPECIAL and native.kind == "f":
        return native.type(_SPECIAL[value])
    kinds = {"b": bool, "i": int, "u": int}.get(native.kind, (int, float))
    if not isinstance(value, kinds) or (isinstance(value, bool) and native.kind != "b"):
        raise ForeignJsonError(f"its fill_value {str(value)[:60]!r} is no {native.name}")
    try:
        return native.type(value)
    except OverflowError:
        raise ForeignJsonError(f"its fill_value {str(value)[:60]} is no {native.name}") from None
