"""Results as single objects: a local draft, as of any file, and one upload when it is complete.

The draft lies in the folder for temporary files (`TMPDIR`). An object appears, or is replaced, in one moment.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element, StagingArea, State, Writer
from flowcompute.errors import CheckpointError, DestinationError
from flowcompute.files import StoreError, without_secrets
from flowcompute.objects import ObjectPrefix
from flowcompute.sinks.file_sink import StoredSink, StoredWriter
from flowcompute.sinks.unbound import UNBOUND
from flowcompute.spec import Spec


def draft_target(url: str) -> str:
    """Return the path beside which the draft of an object lies: a function of its URL and of the user."""
    digest = hashlib.sha256(url.encode(errors="surrogateescape")).hexdigest()[:16]
    name = f"flowcompute-{os.geteuid()}-{digest}-{os.path.basename(url)[-80:]}"
    return os.path.join(os.path.realpath(tempfile.gettempdir()), name)


class UploadSink(Destination):
    """A file in an object store. `fc.save` makes it.

    Attributes:
        path: the URL as the user gave it; also the value of the root.
        file: the sink of the draft.
        allow: where a checkpoint named the URL, what its jobs may write to; None where the user named it.
    """

    path: str
    file: StoredSink
    allow: tuple[str, ...] | None = None

    def __init__(self, url: str, file: StoredSink, *, name: str | None = None) -> None:
        super().__init__(UNBOUND, name=name)
        ObjectPrefix(url)
        self.freeze_fields(path=url, file=file, takes_numbers=file.takes_numbers, takes_named=file.takes_named)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "save"

    @property
    def origin(self) -> str:
        """The object's own name."""
        return os.path.basename(self.path)

    def bind(self, element: Any) -> Destination:
        """Return a copy of this destination with its input; see `StoredSink.bind`."""
        return self.of_bound(self.file.bind(element))

    def of_bound(self, file: Element) -> Destination:
        """Return a copy of this destination whose draft is written by a sink that has its input."""
        assert isinstance(file, StoredSink)
        twin = self._copy()
        twin.freeze_fields(file=file, inputs=file.inputs, spec=file.spec)
        return twin

    def held_bytes(self, spec: Spec) -> int:
        """Return the bytes of the parts that are sent at a time."""
        del spec
        return ObjectPrefix.UPLOAD_BYTES

    def open(self, spec: Spec) -> UploadWriter:
        """Begin the draft.

        Raises:
            DestinationError: if it cannot be written.
        """
        self._require_allowed()
        return UploadWriter(self, self.file.open(spec))

    def open_at(self, spec: Spec, place: StagingArea) -> UploadWriter:
        """Begin the draft under a name that holds the job's token."""
        self._require_allowed()
        return UploadWriter(self, self.file.open_at(spec, place))

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> UploadWriter:
        """Continue with the draft; see `StoredSink.reopen`."""
        return UploadWriter(self, self.file.reopen(spec, place, state))

    def recover(self, spec: Spec, place: StagingArea, state: State) -> str:
        """Upload the complete draft unless that was done, and return the URL.

        Raises:
            CheckpointError: if neither the draft nor the object is there as the job has left them.
        """
        size = int(state["size"])
        if os.path.lexists(state["draft"]):
            # Nobody lived to upload it.
            return UploadWriter(self, self.file.reopen(spec, place, state)).commit()
        with errors(self, "look at"):
            found = ObjectPrefix(self.path).size()
        if found != size:
            raise CheckpointError(
                f"cannot use {without_secrets(self.path)}: it is not what the finished job has written",
                element=self.name or self.label,
                site=self.site,
                expected=f"{size} bytes",
                got="none" if found is None else f"{found} bytes",
                hint="put it back, or remove the checkpoint to compute it anew",
            )
        return self.path

    def _require_allowed(self) -> None:
        """Refuse to replace an object that a checkpoint, and not the user, has named.

        Raises:
            CheckpointError: if there is one.
        """
        if self.allow is None:
            return
        place = ObjectPrefix(self.path)
        with errors(self, "look at"):
            there = None if place.lies_in(self.allow) else place.size()
        if there is not None:
            raise CheckpointError(
                f"cannot replace {without_secrets(self.path)}, which the checkpoint names and this job has not begun",
                element=self.name or self.label,
                site=self.site,
                expected="a name without an object",
                got=f"an object of {there} bytes",
                hint="if that is what you want, name it: fc.thaw(path, allow=[url])",
            )


class UploadWriter(Writer):
    """Writer of a draft that is uploaded at the end."""

    def __init__(self, sink: UploadSink, file: StoredWriter) -> None:
        self._sink, self._file = sink, file
        self._size: int | None = None

    def write(self, array: np.ndarray, start: int) -> None:
        """Write records to the draft; see `Writer.write`."""
        self._file.write(array, start)

    def write_numbers(self, array: np.ndarray, start: int) -> None:
        """Write parts of items to the draft; see `Writer.write_numbers`."""
        self._file.write_numbers(array, start)

    def snapshot(self) -> State:
        """Return the state of the draft."""
        return self._file.snapshot()

    def persist(self, state: State, place: StagingArea) -> State:
        """Make the draft durable; see `Writer.persist`."""
        return self._file.persist(state, place)

    def suspend(self) -> None:
        """Close the draft and leave it in place."""
        self._file.suspend()

    def seal(self, place: StagingArea) -> State:
        """Complete the draft; see `Writer.seal`."""
        state = self._file.seal(place)
        self._size = int(state["size"])
        return state

    def commit(self) -> str:
        """Complete the draft, upload it and remove it; return the URL.

        Raises:
            DestinationError: if the store refuses. Then there is no new object.
        """
        was_sealed = self._size is not None
        try:
            if self._size is None:
                self._size = int(self._file.complete_draft().size)
            self.send(self._size)
        except DestinationError:
            # A draft that a finished job has sealed stays, so that `recover` finds it.
            (self.suspend if was_sealed else self.abort)()
            raise
        return self._sink.path

    def send(self, size: int) -> None:
        """Upload the complete draft, and remove it.

        Raises:
            DestinationError: if the store refuses, or has another number of bytes afterwards.
        """
        place = ObjectPrefix(self._sink.path)
        with errors(self._sink, "upload"):
            place.upload(self._file.lend())
            found = place.size()
            if found != size:
                raise StoreError(f"the store has {found} bytes where {size} were sent", "run it again")
        self._file.abort()

    def abort(self) -> None:
        """Remove the draft."""
        self._file.abort()


@contextlib.contextmanager
def errors(sink: UploadSink, doing: str) -> Iterator[None]:
    """Name the element and the URL in errors of the store.

    Raises:
        DestinationError: for each of them.
    """
    try:
        yield
    except StoreError as error:
        raise DestinationError(
            f"cannot {doing} {without_secrets(sink.path)}: {error}",
            element=sink.name or sink.label,
            site=sink.site,
            hint=error.advice,
        ) from error
