"""Envelopes that no checkpoint ever wrote, with a valid checksum: CheckpointError and nothing else, in bounded memory."""

from __future__ import annotations

import hashlib
import tracemalloc
import warnings
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.values import Extension
from flowcompute.errors import CheckpointError, CheckpointWarning
from tests.support.disk import Disk
from tests.support.simulated_files import SimulatedFiles

PATH = "/job"
ARRAY = np.arange(4, dtype=np.int32)
DIGEST = hashlib.sha256(ARRAY.tobytes()).digest()


def small() -> Disk:
    disk = Disk()
    with CheckpointFolder.create(PATH, SimulatedFiles(disk)) as folder:
        folder.set_job({"nodes": [1]})
        side = folder.side("s")
        side.write_at(b"123", 0)
        folder.commit({"a": ARRAY, "n": np.int8(3), "m": side.mark(), "b": folder.put_blob(ARRAY), "i": [2**70, "x"]})
        folder.publish()
    return disk


SMALL = small()
ENVELOPE = SMALL.tree()[f"{PATH}/gen-00000000.msgpack"] or b""
CONTENT = ENVELOPE[:-32]
FIELDS: dict[str, Any] = {
    key: value
    for key, value in msgpack.unpackb(ENVELOPE, ext_hook=msgpack.ExtType, strict_map_key=True).items()
    if key != "sha256"
}


def pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def sealed(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


def with_fields(**changes: object) -> bytes:
    """An envelope with other entries, given as values or as raw bytes."""
    fields = {key: pack(value) for key, value in FIELDS.items()}
    fields |= {key: value if isinstance(value, bytes) else pack(value) for key, value in changes.items()}
    head = msgpack.Packer().pack_map_header(len(fields) + 1)
    return sealed(head + b"".join(pack(key) + value for key, value in fields.items()) + b"\xa6sha256\xc4\x20")


def read(envelope: bytes, disk: Disk = SMALL) -> Any:
    """What becomes of a checkpoint with this envelope, named by HEAD."""
    changed = disk.copy()
    find = SimulatedFiles(changed).find
    changed.files[find(f"{PATH}/gen-00000000.msgpack")] = envelope
    changed.files[find(f"{PATH}/HEAD")] = f"0 {envelope[-32:].hex()}\n".encode()
    with CheckpointFolder.peek(PATH, SimulatedFiles(changed)) as folder:
        return folder.newest().body


def test_an_envelope_put_together_like_this_is_read() -> None:
    body = read(with_fields())
    assert body["a"].tolist() == [0, 1, 2, 3]
    assert body["i"] == [2**70, "x"]
    assert read(with_fields(body={"k": 1}, later={"added": "by a later minor version"}, format=[1, 7])) == {"k": 1}


def extension(code: int, fields: object) -> bytes:
    return pack({"x": msgpack.ExtType(code, fields if isinstance(fields, bytes) else pack(fields))})


def array(
    *, dtype: object = "int32", shape: object = (4,), offset: object = 0, size: object = 16, digest: object = DIGEST
) -> bytes:
    return extension(Extension.ARRAY, [dtype, list(shape) if isinstance(shape, tuple) else shape, offset, size, digest])


def scalar(*fields: object) -> bytes:
    return extension(Extension.SCALAR, list(fields))


def within(levels: int) -> bytes:
    data = bytes(100_000)
    for _ in range(levels):
        data = b"\xc9" + len(data).to_bytes(4, "big") + bytes([Extension.SCALAR]) + data
    return data


def digest_of(part: np.ndarray) -> bytes:
    return hashlib.sha256(part.tobytes()).digest()


BODIES = {
    "a list that claims 4 billion entries": b"\x81\xa1x\xdd\xff\xff\xff\xff",
    "a map that claims 4 billion entries": b"\x81\xa1x\xdf\xff\xff\xff\xff",
    "text that claims 4 GiB": b"\x81\xa1x\xdb\xff\xff\xff\xff",
    "bytes that claim 4 GiB": b"\x81\xa1x\xc6\xff\xff\xff\xff",
    "an extension that claims 4 GiB": b"\x81\xa1x\xc9\xff\xff\xff\xff\x02",
    "lists in lists": b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0",
    "lists in lists that claim much": b"\x81\xa1x" + b"\xdc\x01\x00" * 5_000,
    "lists in lists that claim all": b"\x81\xa1x" + b"\xdd\x00\x00\x10\x00" * 60 + bytes(5_000),
    "maps in maps": b"\x81\xa1x" * 50_000 + b"\xc0",
    "no value at all": b"",
    "a byte that means nothing": b"\x81\xa1x\xc1",
    "text that is no text": b"\x81\xa1x\xa2\xff\xfe",
    "a key twice": b"\x82\xa1x\x01\xa1x\x02",
    "a number as key": b"\x81\x01\x02",
    "a list as key": b"\x81\x91\x01\x02",
    "a time": pack({"x": msgpack.Timestamp(1, 2)}),
    "no map": pack([1]),
    "an extension of an unknown type": extension(17, b"12"),
    "an extension in an extension": extension(
        Extension.ARRAY, [msgpack.ExtType(Extension.SCALAR, pack(["bool", b"\1"]))]
    ),
    "extensions within extensions": b"\x81\xa1x" + within(500),
    "a short integer": extension(Extension.INTEGER, b"\0" * 16),
    "a long integer": extension(Extension.INTEGER, b"\0" * 18),
    "an array of objects": array(dtype="object"),
    "an array of records": array(dtype="int32,int32"),
    "an array of no dtype": array(dtype=3),
    "an array of a class": array(dtype="numpy.matrix"),
    "an array beyond the file": array(shape=(5,), size=20),
    "an array that begins late": array(offset=4, shape=(3,), size=12),
    "an array that begins before the file": array(offset=-4),
    "two arrays of the same bytes": pack({"x": [msgpack.ExtType(2, pack(["int32", [4], 0, 16, DIGEST]))] * 2}),
    "two arrays that overlap": pack({"x": [msgpack.ExtType(2, pack(["int32", [2], 0, 8, digest_of(ARRAY[:2])]))] * 2}),
    "an array of fewer numbers than bytes": array(shape=(3,), size=16, digest=digest_of(ARRAY[:3])),
    "an array larger than memory": array(shape=(2**50,), size=2**52),
    "an array of more than 64 bits": array(shape=(2**40, 2**40), size=0),
    "an array whose sizes cancel": array(shape=(2**62, 0, 2**62), size=0),
    "an array of negative size": array(shape=(-4,), size=-16),
    "an array of two negative sizes": array(shape=(-2, -2)),
    "an array of True entries": array(shape=(True,)),
    "an array of 4.0 entries": array(shape=(4.0,)),
    "an array of 65 axes": array(shape=(1,) * 65),
    "an array with another shape": array(shape=(3,)),
    "an array with a wrong checksum": array(digest=bytes(32)),
    "an array with a short checksum": array(digest=b"x"),
    "an array of bools that are none": array(dtype="bool", shape=(16,)),
    "an array without fields": extension(Extension.ARRAY, []),
    "an array that is text": extension(Extension.ARRAY, "int32"),
    "an array with bytes after it": extension(Extension.ARRAY, pack(["int32", [4], 0, 16, DIGEST]) + b"\0"),
    "less than all arrays": array(shape=(3,), size=12, digest=digest_of(ARRAY[:3])),
    "a scalar of two": scalar("int32", b"\0" * 8),
    "a scalar of none": scalar("int32", b""),
    "a bool of 2": scalar("bool", b"\2"),
    "a scalar of text": scalar("str", b"1234"),
    "a scalar that is text": scalar("int32", "1234"),
    "a blob that is missing": extension(Extension.BLOB, ["int32", [4], bytes(32)]),
    "a blob of another size": extension(Extension.BLOB, ["int32", [5], DIGEST]),
    "a blob of 2^60 bytes": extension(Extension.BLOB, ["int8", [2**60], DIGEST]),
    "a side file elsewhere": extension(Extension.MARK, ["../../etc/passwd", 0, hashlib.sha256().digest()]),
    "a side file without a name": extension(Extension.MARK, ["", 0, hashlib.sha256().digest()]),
    "a side file that is shorter": extension(Extension.MARK, ["s", 4, bytes(32)]),
    "a side file of 2^60 bytes": extension(Extension.MARK, ["s", 2**60, hashlib.sha256(b"123").digest()]),
    "a side file of True bytes": extension(Extension.MARK, ["s", True, hashlib.sha256(b"1").digest()]),
    "a side file of 3.0 bytes": extension(Extension.MARK, ["s", 3.0, hashlib.sha256(b"123").digest()]),
    "a side file that is missing": extension(Extension.MARK, ["t", 0, hashlib.sha256().digest()]),
    "a side file of less than nothing": extension(Extension.MARK, ["s", -1, hashlib.sha256().digest()]),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_hostile_body_is_refused_in_bounded_memory(body: bytes) -> None:
    envelope = with_fields(body=body)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="cannot use any generation in /job"):
            read(envelope)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A chunk of 1 MiB is read at a time.
    assert peak < (1 << 20) + 400_000 + 20 * len(envelope)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"magic": "another program"}, "does not begin as a checkpoint's file does"),
        ({"format": [1]}, "its format is not a pair of numbers"),
        ({"format": ["1", 0]}, "its format is not a pair of numbers"),
        ({"format": [0, 9]}, "format is unknown"),
        ({"generation": 1}, "the envelope of another generation"),
        ({"generation": True}, "'generation' is missing or of the wrong type"),
        ({"created": 3}, "'created' is missing"),
        ({"token": b"x"}, "'token' is missing"),
        ({"parent": "0"}, "'parent' is missing"),
        ({"job": None, "body": None}, "'body' is missing"),
        ({"job": b"\xc4\x00"}, "it is the file of another job"),
        ({"job": 5}, "'job' is missing"),
        ({"body": [1]}, "'body' is missing or of the wrong type"),
    ],
    ids=str,
)
def test_wrong_entries_are_said(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        read(with_fields(**changes))


def test_a_checksum_under_another_name_is_none() -> None:
    content = with_fields()[:-32]
    with pytest.raises(CheckpointError, match="do not match the checksum that it ends with"):
        read(sealed(content.replace(b"\xa6sha256", b"\xa6sha257")))


def test_a_newer_version_is_refused_in_one_clear_line_and_not_fallen_back_from() -> None:
    newer = SMALL.copy()
    with CheckpointFolder.open(PATH, SimulatedFiles(newer)) as folder:
        folder.commit({"k": 1})
    find = SimulatedFiles(newer).find
    envelope = with_fields(generation=1, format=[2, 1], library="9.9", body=b"\xc1\xc1 all may be different")
    newer.files[find(f"{PATH}/gen-00000001.msgpack")] = envelope
    for head in (f"1 {envelope[-32:].hex()}\n", "rotten"):
        newer.files[find(f"{PATH}/HEAD")] = head.encode()
        folder = CheckpointFolder.open(PATH, SimulatedFiles(newer))
        with folder, pytest.raises(CheckpointError) as caught:
            folder.newest()
        assert caught.value.message == (
            "cannot read gen-00000001.msgpack: it was made by a newer flowcompute ('9.9'): its format is 2.1, here it is 1"
        )
        assert caught.value.hint == "resume it with that version"
        assert f"{PATH}/gen-00000001.msgpack" in newer.tree()


@pytest.mark.parametrize(("name", "most"), [("HEAD", 128), ("gen-00000000.msgpack", 1000)])
def test_a_file_that_is_too_large_is_not_read(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowcompute.checkpoint.store.envelope.MAX_BYTES", 1000)
    disk = SMALL.copy()
    disk.files[SimulatedFiles(disk).find(f"{PATH}/{name}")] = bytes(4_000_000)
    disk.files[SimulatedFiles(disk).find(f"{PATH}/job.msgpack")] = b""
    tracemalloc.start()
    try:
        with CheckpointFolder.peek(PATH, SimulatedFiles(disk)) as folder, pytest.raises(CheckpointError) as caught:
            folder.newest()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"{name}: it has 4000000 bytes, but at most {most} are allowed" in str(caught.value)
    assert peak < 400_000


def outcome(envelope: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        try:
            body = read(envelope)
        except CheckpointError:
            return
    assert type(body) is dict


@given(st.data())
def test_changed_bytes_under_a_valid_checksum_are_an_error_or_a_body(data: st.DataObject) -> None:
    content = bytearray(CONTENT)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        count = data.draw(st.integers(0, 5))
        content[at : at + count] = data.draw(st.binary(max_size=6))
    kept = data.draw(st.sampled_from([b"", b"\xa6sha256\xc4\x20"]))
    outcome(sealed(bytes(content) + kept))


@given(st.binary(max_size=200))
def test_any_bytes_as_a_body_are_an_error_or_a_body(body: bytes) -> None:
    outcome(with_fields(body=body))


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=4)
        | st.builds(
            lambda code, fields: msgpack.ExtType(code, pack(fields)), st.integers(0, 7), st.lists(inner, max_size=6)
        )
    ),
    max_leaves=20,
)


@given(st.sampled_from([*FIELDS, "more"]), TREES)
def test_any_values_as_entries_are_an_error_or_a_body(name: str, value: object) -> None:
    outcome(with_fields(**{name: pack(value)}))
