"""Results as Zarr arrays in object stores: an object for each chunk, and `zarr.json` last.

Chunks are put as they become whole, and each is a function of its records. So a job that is killed puts at most the
same objects again. There is no array before its metadata, which is put on condition that there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element, StagingArea, State, Writer
from flowcompute.errors import CheckpointError, DestinationError
from flowcompute.files import StoreError, without_secrets
from flowcompute.objects import ObjectPrefix
from flowcompute.sinks.unbound import UNBOUND
from flowcompute.sinks.zarr import METADATA, OLD_METADATA, ZarrSink
from flowcompute.spec import Spec

MARK = ".flowcompute-{token}"
"""Object that shows who has begun an array: nobody else can have put it there."""


class ZarrObjectsSink(Destination):
    """A Zarr array in an object store. `fc.save` makes it.

    Attributes:
        path: the URL as the user gave it; also the value of the root.
        array: a sink of a local array, which knows its layout.
        allow: where a checkpoint named the URL, what its jobs may write to; None where the user named it.
    """

    path: str
    array: ZarrSink
    allow: tuple[str, ...] | None = None

    def __init__(self, url: str, *, chunk: int | None = None, name: str | None = None) -> None:
        super().__init__(UNBOUND, name=name)
        ObjectPrefix(url)
        array = ZarrSink(os.path.basename(url), chunk=chunk, name=name)
        self.freeze_fields(path=url, array=array)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "save"

    @property
    def origin(self) -> str:
        """The array's own name."""
        return os.path.basename(self.path)

    def accept(self, spec: Spec, element: Element) -> None:
        """Check the dtype and the size of chunks; see `ZarrSink.accept`."""
        self.array.accept(spec, element)

    def held_bytes(self, spec: Spec) -> int:
        """Return the bytes of the open chunk, and of the copies that a checkpoint and a request make of it."""
        return 3 * self.chunk_bytes(spec)

    def chunk_bytes(self, spec: Spec) -> int:
        """Return the bytes of a chunk; of a resident value its own."""
        records = 1 if spec.stream is None else self.array.records_of_chunk(spec)
        return records * spec.item_bytes

    def open(self, spec: Spec) -> ZarrObjectsWriter:
        """Check that there is no array of this name.

        Raises:
            DestinationError: if there is one, or the store refuses.
        """
        return self._opened(spec, None)

    def open_at(self, spec: Spec, place: StagingArea) -> ZarrObjectsWriter:
        """Begin an array that a later run can go on with."""
        return self._opened(spec, place)

    def _opened(self, spec: Spec, place: StagingArea | None) -> ZarrObjectsWriter:
        writer = ZarrObjectsWriter(self, spec, None if place is None else place.token)
        with writer.errors("look at"):
            if writer.objects.exists(METADATA) or writer.objects.exists(OLD_METADATA):
                raise writer.refused("there is an array", "a new name", "choose another name, or remove it first")
            is_named = self.allow is None or writer.objects.lies_in(self.allow)
            there = [] if is_named else writer.objects.first_names(3)
        if there:
            raise CheckpointError(
                f"cannot write to {without_secrets(self.path)}, which the checkpoint names: there are objects",
                element=self.name or self.label,
                site=self.site,
                expected="a place without objects",
                got=", ".join(there),
                hint="if that is what you want, name it: fc.thaw(path, allow=[url])",
            )
        writer.begin()
        return writer

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> ZarrObjectsWriter:
        """Go on with an array that was begun.

        Raises:
            CheckpointError: if nothing shows that this job has begun it, or the open chunk is not in the checkpoint.
        """
        writer = ZarrObjectsWriter(self, spec, place.token)
        writer.resume(place, state)
        return writer

    def recover(self, spec: Spec, place: StagingArea, state: State) -> str:
        """Put the metadata of a finished array unless it is there, and return the URL.

        Raises:
            CheckpointError: if there is another array.
        """
        writer = ZarrObjectsWriter(self, spec, place.token)
        writer.count(int(state["written"]))
        with writer.errors("look at"):
            is_there = writer.objects.exists(METADATA)
        if not is_there:
            writer.require_begun()
        try:
            writer.publish()
        except DestinationError as error:
            raise CheckpointError(
                f"cannot use {without_secrets(self.path)}: it is not what the finished job has written",
                element=self.name or self.label,
                site=self.site,
                hint="remove the checkpoint to compute it anew",
            ) from error
        return self.path


class ZarrObjectsWriter(Writer):
    """Writer of chunks. The chunk that is open lies in memory."""

    def __init__(self, sink: ZarrObjectsSink, spec: Spec, token: str | None) -> None:
        self._sink, self._spec, self._token = sink, spec, token
        self.objects = ObjectPrefix(sink.path)
        self._chunk = np.zeros(max(1, sink.chunk_bytes(spec)), np.uint8)
        self._written = self._bytes = 0
        self._slot = 0
        self._done = False

    # -- beginning ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Show who has begun the array, where a later run may go on with it."""
        if self._token is not None:
            with self.errors("begin"):
                self.objects.put(MARK.format(token=self._token), b"")

    def require_begun(self) -> None:
        """Check that this job has begun the array.

        Raises:
            CheckpointError: if nothing shows it.
        """
        with self.errors("look at"):
            is_begun = self.objects.exists(MARK.format(token=self._token))
        if not is_begun:
            raise CheckpointError(
                f"cannot go on with {without_secrets(self._sink.path)}: nothing shows that this job has begun it",
                element=self._sink.name or self._sink.label,
                site=self._sink.site,
                expected=f"an object {MARK.format(token=self._token)} there",
                hint="remove the checkpoint to begin anew",
            )

    def resume(self, place: StagingArea, state: State) -> None:
        """Take the state of a run before this one."""
        self.require_begun()
        self.count(int(state["written"]))
        self._slot = int(state["slot"])
        found = self._chunk[: self._filled].data
        count = place.side().read_into(found, self._slot * len(self._chunk)) if self._filled else 0
        if count != self._filled or hashlib.sha256(found).digest() != state["sha256"]:
            raise CheckpointError(
                "cannot resume: the checkpoint does not hold the records of the open chunk",
                element=self._sink.name,
                site=self._sink.site,
                expected=f"{self._filled} bytes",
                got="other bytes, or fewer",
                hint="remove the checkpoint to begin anew",
            )

    def count(self, written: int) -> None:
        """Take so many records as written."""
        self._written, self._bytes = written, written * self._spec.item_bytes

    @property
    def _filled(self) -> int:
        """Bytes of the open chunk."""
        return self._bytes % len(self._chunk)

    # -- writing ------------------------------------------------------------------------------------------------

    def write(self, array: np.ndarray, start: int) -> None:
        """Fill chunks, and put those that are whole; see `Writer.write`."""
        data = array.astype(self._spec.dtype, order="C", casting="equiv", copy=False).reshape(-1).view(np.uint8)
        self._written = 1 if self._spec.stream is None else start + len(array)
        while len(data):
            number, at = divmod(self._bytes, len(self._chunk))
            part = data[: len(self._chunk) - at]
            self._chunk[at : at + len(part)] = part
            self._bytes += len(part)
            data = data[len(part) :]
            if not self._filled:
                self._put_chunk(number)

    @property
    def _records(self) -> int:
        return self._sink.array.records_of_chunk(self._spec)

    def _name(self, number: int) -> str:
        axes = len(self._spec.shape)
        if self._spec.stream is None:
            return ".".join(["c", *["0"] * axes])
        return ".".join(["c", str(number), *["0"] * axes])

    def _put_chunk(self, number: int) -> None:
        with self.errors("write to", self._name(number)):
            self.objects.put(self._name(number), self._chunk.tobytes())

    # -- checkpoints --------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        """Return the records written, and a copy of the open chunk's bytes, which `persist` takes out again."""
        return {"written": self._written, "open": self._chunk[: self._filled].tobytes()}

    def persist(self, state: State, place: StagingArea) -> State:
        """Keep the open chunk in the checkpoint; whole ones are in the store. See `Writer.persist`."""
        # The checkpoint before this one counts until this one is there: two take turns.
        self._slot ^= 1
        held = state["open"]
        side = place.side()
        side.write_at(held, self._slot * len(self._chunk))
        side.fsync()
        return {"written": state["written"], "slot": self._slot, "sha256": hashlib.sha256(held).digest()}

    def suspend(self) -> None:
        """Leave what is in the store."""

    def seal(self, place: StagingArea) -> State:  # noqa: ARG002
        """Put the last chunk, so that only the metadata is missing."""
        self._finish()
        return {"written": self._written}

    def commit(self) -> str:
        """Put the last chunk and the metadata, and return the URL.

        Raises:
            DestinationError: if the store refuses, or somebody has made an array of this name meanwhile.
        """
        try:
            self._finish()
            self.publish()
        except DestinationError:
            if not self._done:
                self.abort()
            raise
        return self._sink.path

    def _finish(self) -> None:
        if self._done:
            return
        length = self._spec.length
        if length is not None and self._written != length:
            raise self.refused("records are missing", f"{length} records", None, f"{self._written}")
        if self._filled:
            self._chunk[self._filled :] = 0
            self._put_chunk(self._bytes // len(self._chunk))
        self._done = True

    def publish(self) -> None:
        """Put the metadata, unless the very same is there; remove what an earlier run has left."""
        text = self._sink.array.metadata(self._spec, None if self._spec.stream is None else self._written)
        with self.errors("complete"):
            chunks = -(-self._written // self._records) if self._spec.stream is not None else 1
            own = {self._name(number) for number in range(chunks)} | {METADATA}
            if self.objects.put_new(METADATA, text):
                self._remove_ours(own)
                return
            if self.objects.read(METADATA, len(text) + 1) == text:
                return
        raise self.refused("there is an array by now", "a new name", "choose another name, or remove it first")

    def abort(self) -> None:
        """Remove the chunks that were put."""
        if self._done and self._token is not None:
            return
        with self.errors("remove what was written to"):
            if not self.objects.exists(METADATA):
                self._remove_ours(set())

    def _remove_ours(self, but: set[str]) -> None:
        """Remove chunks and marks of jobs of ours, but those of these names."""
        self.objects.remove([name for name in self.objects.names() if name not in but and _is_ours(name)])

    # -- errors -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def errors(self, doing: str, name: str | None = None) -> Iterator[None]:
        """Name the element and the URL in errors of the store.

        Raises:
            DestinationError: for each of them.
        """
        try:
            yield
        except StoreError as error:
            where = without_secrets(self._sink.path) + ("" if name is None else f"/{name}")
            raise DestinationError(
                f"cannot {doing} {where}: {error}",
                element=self._sink.name or self._sink.label,
                site=self._sink.site,
                hint=error.advice,
            ) from error

    def refused(self, what: str, expected: str, hint: str | None, got: Any = None) -> DestinationError:
        """Return an error of this place."""
        return DestinationError(
            f"cannot write {without_secrets(self._sink.path)}: {what}",
            element=self._sink.name or self._sink.label,
            site=self._sink.site,
            expected=expected,
            got=got,
            hint=hint,
        )


def _is_ours(name: str) -> bool:
    """Check whether a job of ours has put an object of this name beside an array's metadata."""
    return name.startswith((MARK.format(token=""), "c.")) or name == "c"
