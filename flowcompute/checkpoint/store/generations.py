"""Generations, blobs and the job: the immutable files of a checkpoint. Each read checks their checksums."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

import numpy as np

from flowcompute.checkpoint.store import envelope, side_files
from flowcompute.checkpoint.store.durable_files import OpenFile, file_name, read_whole, write_new, write_over
from flowcompute.checkpoint.store.encode import Encoded
from flowcompute.checkpoint.store.envelope import NewerError, field_of, seal, unseal
from flowcompute.checkpoint.store.values import ArrayPlace, Blob, DamagedError, empty_array, native
from flowcompute.errors import CheckpointError
from flowcompute.files import Files
from flowcompute.imports import dataclass

JOB = "job.msgpack"
_ENVELOPE = re.compile(r"gen-(\d{8,18})\.msgpack")
_NUMBERED = re.compile(r"gen-(\d{8,18})\.(?:msgpack|bin)")
_BLOB = re.compile(r"blob-([0-9a-f]{64})\.bin")

ArraysAre = Literal["read", "checked", "skipped"]


@dataclass(slots=True)
class Loaded:
    """A generation as read from its files.

    Attributes:
        number: of the generation.
        sha256: checksum that its envelope ends with.
        created: seconds since 1970 by the clock of the machine that wrote it; informative.
        token: of the job.
        parent: number of the generation before, or None.
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
    """Return the path of a generation's envelope."""
    return os.path.join(folder, f"gen-{number:08d}.msgpack")


def arrays_path(folder: str, number: int) -> str:
    """Return the path of a generation's arrays. Without arrays there is no such file."""
    return os.path.join(folder, f"gen-{number:08d}.bin")


def blob_path(folder: str, sha256: str) -> str:
    """Return the path of a blob."""
    return os.path.join(folder, f"blob-{sha256}.bin")


def number_of(name: str, *, envelope_only: bool = False) -> int | None:
    """Return the number of the generation that a file of this name belongs to, or None."""
    match = (_ENVELOPE if envelope_only else _NUMBERED).fullmatch(name)
    return int(match[1]) if match else None


def digest_of(name: str) -> str | None:
    """Return the SHA-256 (hexadecimal) in the file name of a blob, or None for another file."""
    match = _BLOB.fullmatch(name)
    return match[1] if match else None


def write_generation(files: Files, folder: str, number: int, sealed: Encoded) -> None:
    """Write the files of a generation and make their contents durable. On an error they are removed again."""
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
    """Read and check a generation and everything in its folder that it refers to, except the job.

    Args:
        files: the file layer.
        folder: the path of the checkpoint.
        number: of the generation.
        arrays: treatment of arrays, blobs and side files. "read" reads the arrays and checks the rest.
            "checked" checks all of them in bounded memory. "skipped" opens none of them.

    Raises:
        DamagedError: if anything is missing or differs from what was written.
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
        raise DamagedError(f"cannot read {file_name(path)}: {error.message}") from error
    except NewerError as error:
        raise NewerError(f"cannot read {file_name(path)}: {error.message}", hint=error.hint) from error
    finally:
        content.close()
    if arrays != "skipped":
        for blob in decoded.blobs:
            check_blob(files, folder, blob)
        for mark in decoded.marks:
            side_files.check_side_file(files, folder, mark)
    return loaded


class _Arrays:
    """File of a generation's arrays, opened when the first array is requested."""

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
            raise DamagedError(f"cannot read {file_name(self._path)}: it ends before an array does")
        if self._what == "read":
            return read_array(self._file, self._path, place)
        if self._file.sha256(place.offset, place.size_bytes) != place.sha256:
            raise DamagedError(f"cannot read {file_name(self._path)}: it holds an array with another checksum")
        return None

    def finish(self, size_bytes: int) -> None:
        if self._file is not None and self._file.size_bytes != size_bytes:
            raise DamagedError(f"cannot read {file_name(self._path)}: it is longer than its arrays")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_array(file: OpenFile, path: str, place: ArrayPlace) -> np.ndarray:
    """Read an array into new memory and check it."""
    array, content = empty_array(place.dtype, place.shape)
    file.read_into(content, place.offset)
    if hashlib.sha256(content).digest() != place.sha256:
        raise DamagedError(f"cannot read {file_name(path)}: it holds an array with another checksum")
    return native(array)


def write_blob(files: Files, folder: str, blob: Blob, content: memoryview) -> None:
    """Write a blob's file and replace a damaged one."""
    write_over(files, blob_path(folder, blob.sha256), [content])


def read_blob(files: Files, folder: str, blob: Blob) -> np.ndarray:
    """Read a blob's array into new memory.

    Raises:
        DamagedError: if the file is missing or differs from what was written.
    """
    path = blob_path(folder, blob.sha256)
    place = ArrayPlace(blob.dtype, blob.shape, 0, blob.size_bytes, bytes.fromhex(blob.sha256))
    with OpenFile(files, path) as file:
        if file.size_bytes != blob.size_bytes:
            raise DamagedError(
                f"cannot read {file_name(path)}: it has {file.size_bytes} bytes, but {blob.size_bytes} were written"
            )
        return read_array(file, path, place)


def check_blob(files: Files, folder: str, blob: Blob) -> None:
    """Check a blob's file in bounded memory.

    Raises:
        DamagedError: if the file is missing or differs from what was written.
    """
    path = blob_path(folder, blob.sha256)
    with OpenFile(files, path) as file:
        if file.size_bytes != blob.size_bytes or file.sha256(0, blob.size_bytes).hex() != blob.sha256:
            raise DamagedError(f"cannot read {file_name(path)}: it does not hold what was written")


def write_job(files: Files, folder: str, token: str, body: Mapping[str, Any]) -> tuple[bytes, list[Blob]]:
    """Write the job's file and return its checksum and the blobs it refers to."""
    sealed = seal({"token": token, "job": body})
    if sealed.arrays or sealed.marks:
        raise CheckpointError("cannot store the job in a checkpoint", hint="put its arrays with put_blob")
    write_new(files, os.path.join(folder, JOB), [sealed.data])
    return sealed.data[-32:], sealed.blobs


def read_job(files: Files, folder: str, sha256: bytes) -> tuple[dict[str, Any], list[Blob]]:
    """Return the job and the blobs it refers to. The blobs are not checked.

    Raises:
        DamagedError: if the file does not have this checksum.
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
        raise DamagedError(f"cannot read {JOB}: {error.message}") from error
