"""Files of weights: what is in them, that it stays there, and that no header is believed."""

from __future__ import annotations

import itertools
import os
import resource
import struct
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.compute import Constant
from flowcompute.elements.quantized import BLOCK_FORMATS
from flowcompute.model_files import gguf_header
from flowcompute.model_files.gguf_header import NUMBERS, TENSOR_TYPES, read_gguf
from flowcompute.sources.safetensors.tensors import WeightsHeaderError
from tests.model_files.files import (
    METADATA,
    PLAIN,
    SAFE,
    TYPES,
    gguf_bytes,
    gguf_file,
    safetensors_bytes,
    safetensors_file,
    settle,
    tensor,
    text,
)
from tests.quantized.blocks import assert_bits, meant, tame
from tests.support.work import lines_run


def raw_of(kind: str) -> np.ndarray:
    return tame(kind, 4, 2 if kind == "Q6_K" else 16)


# -- GGUF -------------------------------------------------------------------------------------------


def test_types_have_the_numbers_that_gguf_gives_them() -> None:
    assert set(TENSOR_TYPES.values()) == {*BLOCK_FORMATS, *NUMBERS}
    assert all(GGMLQuantizationType[name] == code for code, name in TENSOR_TYPES.items())


def test_metadata_are_what_was_written(tmp_path: Path) -> None:
    weights = fc.weights(gguf_file(tmp_path))
    assert weights.format == "gguf"
    assert {key: weights.metadata[key] for key in METADATA} == METADATA
    assert weights.metadata["general.architecture"] == "none"
    assert weights.metadata["a.numbers"].tolist() == [1, 2, 3]
    assert weights.metadata["a.texts"] == ["", "two", "🙂"]
    assert weights.metadata["a.flags"].tolist() == [True, False]


@pytest.mark.parametrize("device", [None, "numpy"])
def test_tensors_are_what_was_written(tmp_path: Path, device: str | None) -> None:
    weights = fc.weights(gguf_file(tmp_path))
    assert list(weights) == [*TYPES, *PLAIN]
    assert [weights.types[kind] for kind in TYPES] == list(TYPES)
    for kind in TYPES:
        assert_bits(weights[kind].resolve(device=device), meant(raw_of(kind), kind), kind)
        assert np.array_equal(weights.raw(kind).resolve(device=device), raw_of(kind))
        assert_bits(
            fc.dequantize(weights.raw(kind), weights.types[kind]).resolve(device="numpy"), meant(raw_of(kind), kind)
        )
    for kind, array in PLAIN.items():
        got = weights[kind].resolve(device=device)
        assert (got.dtype, got.shape) == (array.dtype, array.shape)
        assert np.array_equal(got, array)


def test_gguf_reads_the_same(tmp_path: Path) -> None:
    path = gguf_file(tmp_path)
    weights, theirs = fc.weights(path), GGUFReader(path)
    assert [one.name for one in theirs.tensors] == list(weights)
    for one in theirs.tensors:
        assert weights.types[one.name] == one.tensor_type.name
        assert np.array_equal(np.asarray(weights.raw(one.name).value).reshape(-1), one.data.reshape(-1).view(np.uint8))


def test_an_element_is_made_once(tmp_path: Path) -> None:
    weights = fc.weights(gguf_file(tmp_path))
    assert weights["Q4_0"] is weights["Q4_0"]
    assert len(weights) == len(TYPES) + len(PLAIN)
    assert "nothing" not in weights
    with pytest.raises(KeyError):
        weights["nothing"]
    with pytest.raises(KeyError):
        weights.raw("nothing")


def test_to_ask_for_a_name_makes_no_element(tmp_path: Path) -> None:
    weights = fc.weights(gguf_file(tmp_path))
    with mock.patch.object(Constant, "freeze_fields", side_effect=AssertionError):
        assert "Q4_0" in weights
        assert "nothing" not in weights


def test_a_file_opened_twice_is_one_value(tmp_path: Path) -> None:
    path = gguf_file(tmp_path)
    x = fc.source(np.ones((3, 512), np.float32))
    one, two = (x @ fc.weights(path)["Q4_0"].T for _ in range(2))
    assert len(fc.plan(one + 1, two + 2).kernels) == 1


# -- where the numbers are --------------------------------------------------------------------------


def large_file(folder: Path, mebibytes: int) -> Path:
    """A file of one tensor in Q8_0, of zeros."""
    rows = mebibytes << 5
    path = folder / "large.gguf"
    head = gguf_bytes(tensor("w", (30_720, rows), 8, 0), tensors=1)
    with path.open("wb") as f:
        f.write(head)
        f.truncate(len(head) + rows * 30_720 // 32 * 34)
    return settle(path)


def test_weights_stay_in_the_file(tmp_path: Path) -> None:
    path = large_file(tmp_path, 32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    opened: list[Any] = []
    assert lines_run(lambda: opened.append(fc.weights(path)["w"])) < 10_000
    (w,) = opened
    assert w.shape == (1024, 30_720)
    plan = fc.plan(fc.source(np.ones((1, 30_720), np.float32)) @ w.T, memory="8MiB")
    assert plan.memory.host_bytes < 8 << 20
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 16 << 10


def test_a_mapped_tensor_is_no_copy(tmp_path: Path) -> None:
    weights = fc.weights(gguf_file(tmp_path))
    a, b = weights.raw("Q4_0"), weights["f32"]
    for one in (a, b):
        assert isinstance(one, Constant)
        assert one.memory_bytes == 0
        assert not one.value.flags.writeable
    assert np.shares_memory(weights.raw("f32").value, b.value)


def test_a_file_that_may_still_be_written_is_read(tmp_path: Path) -> None:
    path = gguf_file(tmp_path, settled=False)
    weights = fc.weights(path)
    one = weights.raw("Q6_K")
    assert one.memory_bytes == one.value.nbytes
    path.chmod(0o666)
    os.utime(path, (1e9, 1e9))
    other = fc.weights(path).raw("Q6_K")
    assert other.memory_bytes == other.value.nbytes
    assert np.array_equal(one.value, other.value)


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = gguf_file(tmp_path)
    weights = fc.weights(path)
    w = weights["Q4_0"]
    os.utime(path, (2e9, 2e9))
    for use in (lambda: w.resolve(), lambda: w.resolve(device="numpy"), lambda: fc.weights(path) and w.resolve()):
        with pytest.raises(fc.SourceError, match="the file changed since"):
            use()
    path.unlink()
    with pytest.raises(fc.SourceError, match=r"all\.gguf"):
        w.resolve()
    with pytest.raises(fc.SourceError, match=r"all\.gguf"):
        fc.weights(path)


# -- safetensors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [None, "numpy"])
def test_safetensors_are_what_was_written(tmp_path: Path, device: str | None) -> None:
    weights = fc.weights(safetensors_file(tmp_path))
    assert (weights.format, dict(weights.metadata)) == ("safetensors", {"made": "by hand"})
    assert list(weights) == list(SAFE)
    for name, (kind, array) in SAFE.items():
        assert weights.types[name] == kind
        got = np.asarray(weights[name].resolve(device=device))
        assert (got.dtype, got.shape) == (array.dtype, array.shape), name
        assert got.tobytes() == array.tobytes(), name


def test_types_that_elements_lack_are_bytes(tmp_path: Path) -> None:
    path = tmp_path / "f8.safetensors"
    path.write_bytes(
        safetensors_bytes({"w": {"dtype": "F8_E4M3", "shape": [2, 3], "data_offsets": [0, 6]}}, bytes(range(6)))
    )
    weights = fc.weights(path)
    with pytest.raises(fc.SourceError, match="raw"):
        weights["w"]
    assert weights.raw("w").resolve().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_file_of_another_kind_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(4))
    with pytest.raises(fc.SourceError, match=r"neither GGUF nor safetensors(.|\n)*b'GGUF'(.|\n)*NUMPY"):
        fc.weights(tmp_path / "x.npy")


def test_bools_are_0_or_1(tmp_path: Path) -> None:
    path = tmp_path / "b.safetensors"
    path.write_bytes(safetensors_bytes({"w": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}, b"\x01\x02"))
    with pytest.raises(fc.SourceError, match="not a bool"):
        fc.weights(path)["w"]


# -- headers that lie -------------------------------------------------------------------------------

MAX = (1 << 64) - 1
KEY = text("k")


def array(kind: int, count: int, body: bytes = b"") -> bytes:
    return struct.pack("<IIQ", 9, kind, count) + body


HOSTILE_GGUF: dict[str, bytes] = {
    "nothing": b"",
    "another file": b"PK\x03\x04" + bytes(100),
    "version 1": gguf_bytes(version=1),
    "version 4": gguf_bytes(version=4),
    "big endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(100),
    "2^63 tensors": gguf_bytes(tensors=1 << 63),
    "2^64-1 tensors": gguf_bytes(tensors=MAX),
    "2^63 keys": gguf_bytes(keys=1 << 63),
    "a key of 2^63 bytes": gguf_bytes(struct.pack("<Q", 1 << 63), keys=1, data=1000),
    "a key that is no UTF-8": gguf_bytes(text(b"\xff\xfe"), struct.pack("<II", 4, 1), keys=1),
    "a key twice": gguf_bytes(*[KEY + struct.pack("<II", 4, 1)] * 2, keys=2),
    "a text of 2^63 bytes": gguf_bytes(KEY, struct.pack("<IQ", 8, 1 << 63), keys=1, data=1000),
    "a value of no type": gguf_bytes(KEY, struct.pack("<II", 13, 1), keys=1),
    "an array of no type": gguf_bytes(KEY, array(99, 1), keys=1, data=100),
    "an array of 2^63 numbers": gguf_bytes(KEY, array(0, 1 << 63), keys=1, data=100),
    "an array of 2^61 longs": gguf_bytes(KEY, array(10, 1 << 61), keys=1, data=100),
    "an array of 2^63 texts": gguf_bytes(KEY, array(8, 1 << 63), keys=1, data=100),
    "an array of 2^63 arrays": gguf_bytes(KEY, array(9, 1 << 63), keys=1, data=100),
    "arrays 100,000 deep": gguf_bytes(KEY, struct.pack("<I", 9), struct.pack("<IQ", 9, 1) * 100_000, keys=1),
    "alignment 0": gguf_bytes(text("general.alignment"), struct.pack("<II", 4, 0), keys=1),
    "alignment 7": gguf_bytes(text("general.alignment"), struct.pack("<II", 4, 7), keys=1),
    "alignment 2^31": gguf_bytes(text("general.alignment"), struct.pack("<II", 4, 1 << 31), keys=1),
    "alignment text": gguf_bytes(text("general.alignment"), struct.pack("<I", 8), text("32"), keys=1),
    "alignment true": gguf_bytes(text("general.alignment"), struct.pack("<IB", 7, 1), keys=1),
    "a tensor twice": gguf_bytes(tensor("t", (8,), 0, 0), tensor("t", (8,), 0, 32), tensors=2, data=64),
    "2^32-1 axes": gguf_bytes(tensor("t", (8,), 0, 0, axes=(1 << 32) - 1), tensors=1, data=100),
    "60 axes": gguf_bytes(tensor("t", (1,) * 60, 0, 0), tensors=1, data=1000),
    "a size of 2^63": gguf_bytes(tensor("t", (1 << 63,), 0, 0), tensors=1, data=100),
    "a size of 2^63 beside 0": gguf_bytes(tensor("t", (0, 1 << 63), 0, 0), tensors=1, data=100),
    "a product of 2^64": gguf_bytes(tensor("t", (1 << 32, 1 << 32), 0, 0), tensors=1, data=100),
    "a product of 2^64 + 8": gguf_bytes(tensor("t", (8, (1 << 61) + 1), 0, 0), tensors=1, data=100),
    "2^62 numbers": gguf_bytes(tensor("t", (1 << 62,), 0, 0), tensors=1, data=100),
    "half a block": gguf_bytes(tensor("t", (16, 2), 2, 0), tensors=1, data=100),
    "a type of none": gguf_bytes(tensor("t", (32,), 4, 0), tensors=1, data=100),
    "a place of 2^63": gguf_bytes(tensor("t", (8,), 0, 1 << 63), tensors=1, data=100),
    "a place of 2^64 - 32": gguf_bytes(tensor("t", (8,), 0, MAX - 31), tensors=1, data=100),
    "a place that is not aligned": gguf_bytes(tensor("t", (8,), 0, 4), tensors=1, data=100),
    "overlapping": gguf_bytes(tensor("a", (16,), 0, 0), tensor("b", (8,), 0, 32), tensors=2, data=64),
    "overlapping at one place": gguf_bytes(tensor("a", (8,), 0, 0), tensor("b", (8,), 0, 0), tensors=2, data=64),
    "behind the end": gguf_bytes(tensor("a", (9,), 0, 0), tensors=1, data=32),
}

ONE: dict[str, Any] = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HOSTILE_SAFE: dict[str, bytes] = {
    "seven bytes": bytes(7),
    "a header of 2^63 bytes": struct.pack("<Q", 1 << 63) + bytes(100),
    "a header of 2^64-1 bytes": struct.pack("<Q", MAX) + bytes(100),
    "no JSON": struct.pack("<Q", 4) + b"{{{{",
    "a list": struct.pack("<Q", 2) + b"[]",
    "brackets 100,000 deep": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "names 100,000 deep": struct.pack("<Q", 600_000) + b'{"a": ' * 100_000,
    "a number of 5,000 digits": (lambda text: struct.pack("<Q", len(text)) + text)(b'{"a": ' + b"9" * 5000 + b"}"),
    "a name twice": (lambda text: struct.pack("<Q", len(text)) + text + bytes(16))(
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}'
    ),
    "a negative size": safetensors_bytes({"a": ONE | {"shape": [-2, -1]}}, bytes(8)),
    "a size of 2^63": safetensors_bytes({"a": ONE | {"shape": [1 << 63]}}, bytes(8)),
    "a product of 2^64 + 2": safetensors_bytes({"a": ONE | {"shape": [2, (1 << 63) + 1]}}, bytes(8)),
    "a fraction": safetensors_bytes({"a": ONE | {"shape": [2.0]}}, bytes(8)),
    "a flag": safetensors_bytes({"a": ONE | {"shape": [True, 2]}}, bytes(8)),
    "a place before the first": safetensors_bytes({"a": ONE | {"data_offsets": [-8, 0]}}, bytes(8)),
    "an end before the begin": safetensors_bytes({"a": ONE | {"data_offsets": [8, 0]}}, bytes(8)),
    "one place": safetensors_bytes({"a": ONE | {"data_offsets": [0]}}, bytes(8)),
    "a place of 2^63": safetensors_bytes({"a": ONE | {"data_offsets": [1 << 62, (1 << 62) + 8]}}, bytes(8)),
    "another size": safetensors_bytes({"a": ONE | {"shape": [3]}}, bytes(8)),
    "overlapping": safetensors_bytes({"a": ONE, "b": ONE | {"data_offsets": [4, 12]}}, bytes(12)),
    "behind the end": safetensors_bytes({"a": ONE}, bytes(7)),
    "65 axes": safetensors_bytes({"a": ONE | {"shape": [1] * 64 + [2]}}, bytes(8)),
    "no places": safetensors_bytes({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)),
    "metadata of numbers": safetensors_bytes({"__metadata__": {"a": 1}, "a": ONE}, bytes(8)),
}


def opened(path: Path, data: bytes) -> fc.NamedWeights | fc.SourceError:
    """What opening a file of these bytes gives with little work and without much memory."""
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made: list[fc.NamedWeights | fc.SourceError] = []

    def attempt() -> None:
        try:
            made.append(fc.weights(path))
        except fc.SourceError as error:
            made.append(error)

    assert lines_run(attempt) < 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    return made[0]


@pytest.mark.parametrize("what", [*HOSTILE_GGUF, *(f"{name}, safetensors" for name in HOSTILE_SAFE)])
def test_headers_that_lie_are_refused(what: str, tmp_path: Path) -> None:
    data = HOSTILE_GGUF.get(what) if what in HOSTILE_GGUF else HOSTILE_SAFE[what.removesuffix(", safetensors")]
    assert data is not None
    error = opened(tmp_path / "bad.gguf", data)
    assert isinstance(error, fc.SourceError), error
    assert "bad.gguf" in str(error)
    assert "test_weights.py" in str(error)
    assert len(str(error)) < 2000


def test_a_sound_header_by_hand_is_read(tmp_path: Path) -> None:
    sound = gguf_bytes(
        KEY,
        array(9, 2, struct.pack("<IQB", 0, 1, 5) * 2),
        tensor("t", (8,), 0, 0),
        tensor("none", (0, 3), 0, 0),
        keys=1,
        tensors=2,
        data=32,
    )
    weights = opened(tmp_path / "sound.gguf", sound)
    assert isinstance(weights, fc.NamedWeights)
    assert [one.tolist() for one in weights.metadata["k"]] == [[5], [5]]
    assert weights["t"].resolve().tolist() == [0] * 8
    assert weights["none"].resolve().shape == (3, 0)


# Zeros and lengths of more than a byte look like the lengths of short texts. Lengths beyond ASCII may end a character.
@given(
    texts=st.lists(
        st.binary(max_size=40) | st.integers(0, 600).map(bytes) | st.integers(0, 200).map(lambda size: b"\xc3" * size),
        max_size=30,
    ),
    chunk=st.integers(1, 80) | st.sampled_from([300, 1 << 16]),
    longest=st.sampled_from([20, 99, 1000]),
    few=st.sampled_from([1, 8]),
    window=st.sampled_from([20, 300, 1 << 14]),
)
def test_texts_are_read_wherever_chunks_end(
    texts: list[bytes], chunk: int, longest: int, few: int, window: int
) -> None:
    data = gguf_bytes(
        KEY, array(8, len(texts), b"".join(map(text, texts))), text("last") + struct.pack("<II", 4, 7), keys=2
    )
    limits = {"_CHUNK_BYTES": chunk, "_LONGEST_TEXT": longest, "_FEW": few, "_WINDOW_BYTES": window}
    with mock.patch.multiple(gguf_header, **limits):
        if any(len(one) > longest for one in texts):
            with pytest.raises(WeightsHeaderError, match="too long"):
                read_gguf(lambda at, count: data[at : at + count], len(data))
            return
        metadata = read_gguf(lambda at, count: data[at : at + count], len(data)).metadata
    assert metadata == {"k": [one.decode(errors="surrogateescape") for one in texts], "last": 7}


def test_short_texts_are_cut_at_once() -> None:
    many = [b"word %d" % number for number in range(20_000)]
    data = gguf_bytes(KEY, array(8, len(many), b"".join(map(text, many))), keys=1)
    found: list[Any] = []
    # A turn of the loop for each text would run more lines.
    assert lines_run(lambda: found.append(read_gguf(lambda at, count: data[at : at + count], len(data)))) < 60_000
    assert found[0].metadata["k"] == [one.decode() for one in many]


@pytest.mark.parametrize("texts", [1, 64, 100])
def test_arrays_of_texts_copy_no_more_than_they_need(texts: int) -> None:
    copied = 0

    class Chunk(bytes):
        def __getitem__(self, place: Any) -> Any:
            nonlocal copied
            found = super().__getitem__(place)
            copied += len(found) if isinstance(place, slice) else 1
            return found

    one = struct.pack("<IQ", 8, texts) + text("a") * texts
    data = gguf_bytes(KEY, array(9, 6400 // texts, one * (6400 // texts)), keys=1)
    read_gguf(lambda at, count: Chunk(data[at : at + count]), len(data))
    # Copies of the whole chunk for each array would be 60 to 3000 times the header.
    assert copied < 40 * len(data)


@pytest.mark.parametrize("make", [gguf_file, safetensors_file])
def test_every_truncation_is_refused(make: Any, tmp_path: Path) -> None:
    data = make(tmp_path).read_bytes()
    last = max(one.offset + one.size_bytes for one in fc.weights(make(tmp_path))._tensors.values())
    header_bytes = min(one.offset for one in fc.weights(make(tmp_path))._tensors.values())
    for cut in itertools.chain(range(header_bytes), range(header_bytes, last, 97), [last - 1]):
        made = opened(tmp_path / "cut.gguf", data[:cut])
        assert isinstance(made, fc.SourceError), cut


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("make", [gguf_file, safetensors_file])
def test_flipped_bytes_are_refused_or_read(make: Any, tmp_path: Path, data: st.DataObject) -> None:
    source = tmp_path / "source"
    whole = bytearray(source.read_bytes() if source.exists() else b"")
    if not whole:
        whole = bytearray(make(tmp_path).read_bytes())
        source.write_bytes(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(1500, len(whole) - 1)))
        whole[at] = data.draw(st.integers(0, 255))
    made = opened(tmp_path / "flipped.gguf", bytes(whole))
    if isinstance(made, fc.NamedWeights):
        for name in made:
            try:
                assert made[name].spec.item_bytes < 1 << 22
            except fc.SourceError:
                continue


@pytest.mark.parametrize("wrong", ["no/such.gguf", ".", "/dev/null"])
def test_what_is_no_file_is_refused(wrong: str) -> None:
    with pytest.raises(fc.SourceError):
        fc.weights(wrong)


@pytest.mark.parametrize("wrong", [None, 3, b"\0", "a\0b"])
def test_what_is_no_path_is_refused(wrong: Any) -> None:
    with pytest.raises((fc.SpecError, fc.SourceError)):
        fc.weights(wrong)
