"""Generations, blobs and the job: the immutable files of a checkpoint, checked whenever they are read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from flowcompute.checkpoint.store import envelope
from flowcompute.checkpoint.store import side_files as side
from flowcompute.checkpoint.store.durable_files import OpenFile, base, read_whole, write_new, write_over
from flowcompute.checkpoint.store.encode import Encoded
from flowcompute.checkpoint.store.envelope import NewerError, field_of, seal, unseal
from flowcompute.checkpoint.store.values import ArrayPlace, Blob, DamagedError, empty_array, native
from flowcompute.errors import CheckpointError
from flowcompute.files import Files

JOB = "job.msgpack"
_ENVELOPE = re.compile(r"gen-(\d{8,18})\.msgpack")
_NUMBERED = re.compile(r"gen-(\d{8,18})\.(?:msgpack|bin)")
_BLOB = re.compile(r"blob-([0-9a-f]{64})\.bin")

ArraysAre = Literal["read", "checked", "skipped"]


@dataclass(slots=True)
class Loaded:
    """A generation as its files say.

    Attributes:
        number: of the generation.
        sha256: that its envelope ends with.
        created: seconds since 1970 by the clock of the machine that wrote it; informative.
        token: of the job.
        parent: the generation before, or None.
        job: checksum of the job's file, or None.
        body: as committed; arrays are None unless they were read.
        blobs: names of the blobs it refers to.
    """

    number: int
    sha256: bytes
    created: float
    token: str
    parent: int | None
    job: bytes | None
    body: dict[str, Any]
    blobs: list[Blob] = field(default_factory=list)


def envelope_path(folder: str, number: int) -> str:
    """Where the envelope of a generation lies."""
    return os.path.join(folder, f"gen-{number:08d}.msgpack")


def arrays_path(folder: str, number: int) -> str:
    """Where the arrays of a generation lie, if it has any."""
    return os.path.join(folder, f"gen-{number:08d}.bin")


def blob_path(folder: str, sha256: str) -> str:
    """Where a blob lies."""
    return os.path.join(folder, f"blob-{sha256}.bin")


def number_of(name: str, *, envelope_only: bool = False) -> int | None:
    """The generation that a file of this name belongs to."""
    match = (_ENVELOPE if envelope_only else _NUMBERED).fullmatch(name)
    return int(match[1]) if match else None


def digest_of(name: str) -> str | None:
    """The content that a blob of this file name has."""
    match = _BLOB.fullmatch(name)
    return match[1] if match else None


def write_generation(files: Files, folder: str, number: int, sealed: Encoded) -> None:
    """Write the files of a generation and make their contents durable. On an error they are gone again."""
    arrays = arrays_path(folder, number)
    if sealed.arrays:
        write_new(files, arrays, sealed.arrays)
    try:
        write_new(files, envelope_path(folder, number), [sealed.data])
    except CheckpointError:
        if sealed.arrays:
            with contextlib.suppress(OSError):
                files.remove(arrays)
        raise


def read_generation(files: Files, folder: str, number: int, arrays: ArraysAre) -> Loaded:
    """A generation and all that it refers to in its folder, except the job, checked.

    Args:
        files: the file layer.
        folder: where the checkpoint is.
        number: of the generation.
        arrays: what becomes of arrays, blobs and side files: arrays are read and the rest is checked; or all is
            checked in bounded memory; or none is looked at.

    Raises:
        DamagedError: if anything is missing or not what was written.
        CheckpointError: if a newer version wrote it, or the system refuses for another reason.
    """
    path = envelope_path(folder, number)
    data = read_whole(files, path, envelope.MAX_BYTES)
    content = _Arrays(files, arrays_path(folder, number), arrays)
    try:
        decoded = unseal(data, content.take)
        fields = decoded.value
        if field_of(fields, "generation", int) != number:
            raise DamagedError("it is the envelope of another generation")
        loaded = Loaded(
            number=number,
            sha256=data[-32:],
            created=field_of(fields, "created", float),
            token=field_of(fields, "token", str),
            parent=field_of(fields, "parent", int, type(None)),
            job=field_of(fields, "job", bytes, type(None)),
            body=field_of(fields, "body", dict),
            blobs=decoded.blobs,
        )
        content.finish(decoded.arrays_bytes)
    except DamagedError as error:
        raise DamagedError(f"{base(path)}: {error.message}") from error
    except NewerError as error:
        raise NewerError(f"{base(path)}: {error.message}", hint=error.hint) from error
    finally:
        content.close()
    if arrays != "skipped":
        for blob in decoded.blobs:
            check_blob(files, folder, blob)
        for mark in decoded.marks:
            side.matches(files, folder, mark)
    return loaded


class _Arrays:
    """The file of arrays of a generation, opened when the first one is asked for."""

    def __init__(self, files: Files, path: str, what: ArraysAre) -> None:
        self._files = files
        self._path = path
        self._what = what
        self._file: OpenFile | None = None

    def take(self, place: ArrayPlace) -> np.ndarray | None:
        if self._what == "skipped":
            return None
        if self._file is None:
            self._file = OpenFile(self._files, self._path)
        if place.offset + place.size_bytes > self._file.size_bytes:
            raise DamagedError(f"{base(self._path)} ends before an array does")
        if self._what == "read":
            return read_array(self._file, self._path, place)
        if self._file.sha256(place.offset, place.size_bytes) != place.sha256:
            raise DamagedError(f"{base(self._path)} holds an array with another checksum")
        return None

    def finish(self, size_bytes: int) -> None:
        if self._file is not None and self._file.size_bytes != size_bytes:
            raise DamagedError(f"{base(self._path)} is longer than its arrays")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_array(file: OpenFile, path: str, place: ArrayPlace) -> np.ndarray:
    """An array from a file, in memory of its own, checked."""
    array, content = empty_array(place.dtype, place.shape)
    file.read_into(content, place.offset)
    if hashlib.sha256(content).digest() != place.sha256:
        raise DamagedError(f"{base(path)} holds an array with another checksum")
    return native(array)


def write_blob(files: Files, folder: str, blob: Blob, content: memoryview) -> None:
    """Write a blob's file, replacing a damaged one."""
    write_over(files, blob_path(folder, blob.sha256), [content])


def read_blob(files: Files, folder: str, blob: Blob) -> np.ndarray:
    """The array of a blob, in memory of its own.

    Raises:
        DamagedError: if it is missing or not what was written.
    """
    path = blob_path(folder, blob.sha256)
    place = ArrayPlace(blob.dtype, blob.shape, 0, blob.size_bytes, bytes.fromhex(blob.sha256))
    with OpenFile(files, path) as file:
        if file.size_bytes != blob.size_bytes:
            raise DamagedError(f"{base(path)} has {file.size_bytes} bytes, {blob.size_bytes} were written")
        return read_array(file, path, place)


def check_blob(files: Files, folder: str, blob: Blob) -> None:
    """Check a blob's file in bounded memory.

    Raises:
        DamagedError: if it is missing or not what was written.
    """
    path = blob_path(folder, blob.sha256)
    with OpenFile(files, path) as file:
        if file.size_bytes != blob.size_bytes or file.sha256(0, blob.size_bytes).hex() != blob.sha256:
            raise DamagedError(f"{base(path)} does not hold what was written")


def write_job(files: Files, folder: str, token: str, body: Mapping[str, Any]) -> tuple[bytes, list[Blob]]:
    """Write the job's file; returns its checksum and the blobs it refers to."""
    sealed = seal({"token": token, "job": body})
    if sealed.arrays or sealed.marks:
        raise CheckpointError("the job cannot be stored in a checkpoint", hint="put its arrays with put_blob")
    write_new(files, os.path.join(folder, JOB), [sealed.data])
    return sealed.data[-32:], sealed.blobs


def read_job(files: Files, folder: str, sha256: bytes) -> tuple[dict[str, Any], list[Blob]]:
    """The job, and the blobs it refers to, which are not looked at.

    Raises:
        DamagedError: if the file is not the one with this checksum.
    """

    def refuse(_: ArrayPlace) -> None:
        raise DamagedError("it holds an array")

    try:
        data = read_whole(files, os.path.join(folder, JOB), envelope.MAX_BYTES)
        if envelope.checksum(data) != sha256:
            raise DamagedError("it is the file of another job")
        decoded = unseal(data, refuse)
        return field_of(decoded.value, "job", dict), decoded.blobs
    except DamagedError as error:
        raise DamagedError(f"{JOB}: {error.message}") from error
