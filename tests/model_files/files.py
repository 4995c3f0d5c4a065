"""Small files of weights."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

from flowcompute.model_files import PlacedWeight, open_weight_file
from tests.quantized.blocks import tame

TYPES = ("Q4_0", "Q6_K", "F16", "BF16", "IQ4_NL")
PLAIN: dict[str, np.ndarray] = {
    "f32": np.arange(12, dtype=np.float32).reshape(3, 4),
    "f64": np.linspace(0, 1, 5),
    "i8": np.arange(-3, 3, dtype=np.int8),
    "i16": np.arange(6, dtype=np.int16).reshape(1, 2, 3),
    "i32": np.arange(7, dtype=np.int32),
    "i64": np.array([1 << 40, -1]),
}
METADATA: dict[str, Any] = {
    "a.uint8": 7, "a.int8": -7, "a.uint16": 700, "a.int16": -700, "a.uint32": 70_000, "a.int32": -70_000,
    "a.uint64": 1 << 40, "a.int64": -(1 << 40), "a.float32": 0.5, "a.float64": 1e-300, "a.bool": True, "a.string": "naïve 🙂",
}  # fmt: skip


def gguf_file(folder: Path, name: str = "all.gguf", *, settled: bool = True) -> Path:
    """A GGUF file as gguf's own writer makes it."""
    path = folder / name
    writer = GGUFWriter(path, "none")
    for key, value in METADATA.items():
        getattr(writer, f"add_{key[2:]}")(key, value)
    writer.add_array("a.numbers", [1, 2, 3])
    writer.add_array("a.texts", ["", "two", "🙂"])
    writer.add_array("a.flags", [True, False])
    for kind in TYPES:
        writer.add_tensor(
            kind, tame(kind, 4, 512 // 256 if kind == "Q6_K" else 16), raw_dtype=GGMLQuantizationType[kind]
        )
    for kind, array in PLAIN.items():
        writer.add_tensor(kind, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return settle(path) if settled else path


def settle(path: Path) -> Path:
    """Let a file look as if nobody had written to it lately, so that it is mapped."""
    path.chmod(0o600)
    os.utime(path, (1e9, 1e9))
    return path


def placed_weight(folder: Path) -> PlacedWeight:
    """Numbers behind the head of a file that has none."""
    path = folder / "numbers.bin"
    path.write_bytes(b"head" + np.arange(15, dtype="f4").tobytes())
    return PlacedWeight(open_weight_file(str(settle(path))), "w", np.dtype("f4"), (3, 5), 4)


SAFE: dict[str, tuple[str, np.ndarray]] = {
    "bool": ("BOOL", np.array([True, False, True])),
    "f32": ("F32", np.arange(6, dtype=np.float32).reshape(2, 3)),
    "f16": ("F16", np.arange(6, dtype=np.float16)),
    "bf16": ("BF16", np.arange(6).astype(ml_dtypes.bfloat16).reshape(3, 2)),
    "f64": ("F64", np.arange(3.0)),
    "u8": ("U8", np.arange(5, dtype=np.uint8)),
    "i64": ("I64", np.arange(-2, 2)),
    "u16": ("U16", np.arange(4, dtype=np.uint16).reshape(2, 1, 2)),
    "none": ("F32", np.empty((0, 3), np.float32)),
    "scalar": ("F32", np.array(2.5, np.float32)),
}


def safetensors_bytes(tensors: dict[str, Any], data: bytes) -> bytes:
    """A safetensors file of this header."""
    header = json.dumps(tensors).encode()
    return struct.pack("<Q", len(header)) + header + data


def safetensors_file(folder: Path, name: str = "all.safetensors") -> Path:
    """A safetensors file whose tensors are not aligned, but for the first ones."""
    header: dict[str, Any] = {"__metadata__": {"made": "by hand"}}
    data = b""
    for key, (kind, array) in SAFE.items():
        shape = list(array.shape)
        header[key] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    path = folder / name
    path.write_bytes(safetensors_bytes(header, data))
    return settle(path)


# -- GGUF by hand -----------------------------------------------------------------------------------


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def tensor(name: str | bytes, shape: tuple[int, ...], kind: int, offset: int, axes: int | None = None) -> bytes:
    sizes = b"".join(struct.pack("<Q", size) for size in shape)
    return (
        text(name) + struct.pack("<I", len(shape) if axes is None else axes) + sizes + struct.pack("<IQ", kind, offset)
    )


def gguf_bytes(
    *parts: bytes, keys: int = 0, tensors: int = 0, version: int = 3, magic: bytes = b"GGUF", data: int = 0
) -> bytes:
    """A GGUF file of these parts of a header, with zeros behind it."""
    head = magic + struct.pack("<IQQ", version, tensors, keys) + b"".join(parts)
    return head + bytes(-len(head) % 32 + data)
