"""Parts that all sinks of one file share. A file is complete under its name, or not there at all."""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from flowcompute.elements import Destination, Element, StagingArea, State, Writer, user_site
from flowcompute.errors import CheckpointError, DestinationError, SpecError, short_repr
from flowcompute.files import (
    FILES,
    Draft,
    Files,
    FolderDraft,
    Sealed,
    Unfinished,
    WrittenPages,
    explain,
    in_the_way,
    is_draft_of,
    may_be_draft_of,
    path_text,
    roll_forward,
    shown,
    temporary_path,
)
from flowcompute.sinks.unbound import UNBOUND
from flowcompute.spec import Spec

AnyDraft = Draft | FolderDraft
"""The draft of a file or of a folder."""


class StoredSink(Destination):
    """The result in a file.

    Attributes:
        path: the file as the user named it; also the value of the root.
        target: its absolute path, resolved when composed.
        files: the file layer.
        durable: whether committing waits until the disk has it.
        allow: where a checkpoint named the file, folders whose files may be replaced; None where the user named it.
        encoder: the package, and its version, that the bytes depend on beside the records; "" for none.
    """

    takes_numbers = True
    encoder = ""
    allow: tuple[str, ...] | None = None

    path: str
    target: str
    files: Files
    durable: bool

    def __init__(
        self, path: str | os.PathLike[str], *, name: str | None = None, files: Files = FILES, durable: bool = True
    ) -> None:
        text = file_path(path, name)
        super().__init__(UNBOUND, name=name)
        self.freeze_fields(path=text, target=os.path.abspath(text), files=files, durable=durable)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "save"

    @property
    def origin(self) -> str:
        """The file's own name."""
        return shown(os.path.basename(self.path))

    @abstractmethod
    def header(self, spec: Spec, length: int | None) -> bytes:
        """Return the bytes before the data, as many for any length. `length` is None for a resident value."""

    # -- for results that are no single file --------------------------------------------------------------

    def draft(
        self,
        spec: Spec,  # noqa: ARG002 - for those whose files depend on it
        *,
        token: str | None = None,
        unfinished: Unfinished | None = None,
        joined: str | None = None,
    ) -> AnyDraft:
        """Begin the draft of a value, continue it, or join that of a process. Raises OSError as the system does."""
        return Draft(self.files, self.target, durable=self.durable, token=token, unfinished=unfinished, joined=joined)

    def complete(self, draft: AnyDraft, spec: Spec, length: int | None, size: int) -> None:  # noqa: ARG002
        """Write what is written last into a draft of `size` bytes of data. Raises OSError as the system does."""
        # So a temporary file of a killed process is no valid file.
        draft.write(self.header(spec, length), 0)

    def roll_forward(self, draft: str, sealed: Sealed) -> Sealed | None:
        """Commit a complete draft that is still there, and return what is found under the target."""
        return roll_forward(self.files, self.target, draft, sealed, durable=self.durable)

    def in_the_way(self) -> tuple[str, str] | None:
        """Return what has the name and cannot be replaced, and what to do; None where it may be written."""
        other = in_the_way(self.files, self.target)
        if other is None:
            return None
        inside = f"fc.save({os.path.join(self.path, 'result.npy')!r})"
        return other, inside if other == "a folder" else "fc.discard() drops a result"

    def open(self, spec: Spec) -> StoredWriter:
        """Create the temporary file beside the target.

        Raises:
            DestinationError: if the folder is missing or cannot be written to, or if the target is not a
                regular file.
        """
        return self._writer(spec)

    def open_at(self, spec: Spec, place: StagingArea) -> StoredWriter:
        """Create the temporary file under a name that holds the job's token."""
        return self._writer(spec, token=place.token)

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> StoredWriter:
        """Continue with the temporary file.

        Raises:
            CheckpointError: if it is missing, or shorter than it was, or has a name that no draft of the job has.
        """
        self._check_draft(place, state)
        return self._writer(spec, state=state)

    def join(self, spec: Spec, draft: str) -> StoredWriter:
        """Open the draft of another process, to write a range of records into it; see `Destination.join`.

        Raises:
            DestinationError: if it is missing, or has a name that no draft of this result has.
        """
        if not may_be_draft_of(draft, self.target):
            raise DestinationError(
                f"cannot write to an unfinished result of {shown(self.target)} that is none of its own",
                element=self.name or self.label,
                site=self.site,
                expected=shown(temporary_path(self.target, "<token>")),
                got=repr(draft)[:200],
                hint="please report this",
            )
        return self._writer(spec, joined=draft)

    def _writer(
        self, spec: Spec, *, token: str | None = None, state: State | None = None, joined: str | None = None
    ) -> StoredWriter:
        """Return a writer of the result; see `StoredWriter`."""
        return StoredWriter(self, spec, token=token, state=state, joined=joined)

    def _check_draft(self, place: StagingArea, state: State) -> None:
        """Refuse a state that names a file which is none of this destination's drafts."""
        if not is_draft_of(state["draft"], self.target, place.token):
            raise CheckpointError(
                f"cannot go on with an unfinished result of {shown(self.target)} that is none of its own",
                element=self.name or self.label,
                site=self.site,
                expected=shown(temporary_path(self.target, place.token)),
                got=repr(state["draft"])[:200],
                hint="somebody has changed the checkpoint: restore it from a copy, or remove it to begin anew",
            )

    def recover(self, spec: Spec, place: StagingArea, state: State) -> str:  # noqa: ARG002
        """Give the complete file its name unless it has it, and return the path as the user named it.

        Raises:
            CheckpointError: if the file is missing, or is not the one that the job has written.
        """
        self._check_draft(place, state)
        sealed = Sealed(int(state["size"]), int(state["mtime_ns"]))
        try:
            found = self.roll_forward(state["draft"], sealed)
        except OSError as error:
            found, (text, _) = None, explain(error)
        else:
            text = "no file" if found is None else f"{found.size} bytes, last changed at {found.mtime_ns} ns"
        if found != sealed:
            raise CheckpointError(
                f"cannot use {shown(self.target)}: it is not what the finished job has written",
                element=self.name or self.label,
                site=self.site,
                expected=f"{sealed.size} bytes, last changed at {sealed.mtime_ns} ns",
                got=text,
                hint="put the file back, or remove the checkpoint to compute it anew",
            )
        return self.path


class StoredWriter(Writer):
    """Writer of a file under a temporary name beside its target. The file is renamed when it is complete.

    Attributes:
        element: name of the element in the plan, for errors.
    """

    def __init__(
        self,
        sink: StoredSink,
        spec: Spec,
        *,
        token: str | None = None,
        state: State | None = None,
        joined: str | None = None,
    ) -> None:
        self.element = sink.name or sink.label
        self._path = sink.path
        self._target = sink.target
        self._site = sink.site
        self._spec = spec
        self._sink = sink
        self._offset = len(sink.header(spec, None if spec.stream is None else spec.length or 0))
        self._written = 0
        self._bytes = 0
        self._is_sealed = False
        self._draft: AnyDraft | None = None
        self._passed: WrittenPages | None = None
        if joined is not None:
            with self._errors(f"join the unfinished file {shown(joined)} of"):
                self._draft = sink.draft(spec, joined=joined)
            return
        self._require_replaceable()
        if state is not None:
            self._reopen_draft(sink, state)
            return
        folder = os.path.dirname(self._target)
        with self._errors(f"create a file in the folder {shown(folder)} for"):
            self._draft = sink.draft(spec, token=token)

    def _reopen_draft(self, sink: StoredSink, state: State) -> None:
        self._written, self._bytes = int(state["written"]), int(state["bytes"])
        size = self._offset + self._bytes if self._bytes else 0
        unfinished = Unfinished(state["draft"], size)
        try:
            self._draft = sink.draft(self._spec, unfinished=unfinished)
        except OSError as error:
            text, _ = explain(error)
            raise CheckpointError(
                f"cannot continue the unfinished result {shown(unfinished.path)}: {text}",
                element=self.element,
                site=self._site,
                expected=f"the file that the job was writing, with at least {size} bytes",
                hint="put it back, or remove the checkpoint to begin anew",
            ) from error

    def write(self, array: np.ndarray, start: int) -> None:
        """Write records at their place; see `Writer.write`."""
        resident = self._spec.stream is None
        records = None if resident else (start, start + len(array))
        data = array.astype(self._spec.dtype, order="C", casting="equiv", copy=False).reshape(-1).view(np.uint8)
        with self._errors("write to", records):
            self._open_draft().write(data.data, self._offset + start * self._spec.item_bytes)
        self._written = 1 if resident else start + len(array)
        self._bytes = start * self._spec.item_bytes + len(data)
        self._send_behind()

    def lend(self) -> str:
        """Return the path of the temporary file; see `Writer.lend`."""
        path = self._open_draft().path
        assert path is not None
        return path

    def filled(self, records: int) -> None:
        """Count the records that others have written; see `Writer.filled`."""
        self._written, self._bytes = records, records * self._spec.item_bytes

    def sync(self) -> None:
        """Make durable what was written; see `Writer.sync`."""
        with self._errors("make durable"):
            self._open_draft().sync()

    def write_numbers(self, array: np.ndarray, start: int) -> None:
        """Write parts of items at their place; see `Writer.write_numbers`."""
        spec = self._spec
        numbers = max(1, spec.item_numbers)
        data = array.astype(spec.dtype, order="C", casting="equiv", copy=False).view(np.uint8)
        with self._errors("write to", (start // numbers, (start + len(array) - 1) // numbers + 1)):
            self._open_draft().write(data.data, self._offset + start * spec.dtype.itemsize)
        self._written = (start + len(array)) // numbers
        self._bytes = start * spec.dtype.itemsize + len(data)
        self._send_behind()

    def _send_behind(self) -> None:
        """Send what was written to the disk, where it is not to stay in the system's cache."""
        if self.uncached:
            self._passed = self._passed or WrittenPages(self._open_draft())
            self._passed.written(self._offset + self._bytes)

    def commit(self) -> str:
        """Write the header, make the file durable, rename it, and return the path as the user named it.

        Raises:
            DestinationError: if any of that fails. Then there is no new file under that name. The one exception
                is an older file that was replaced before syncing its folder failed.
        """
        try:
            self._require_complete()
            self._complete()
        except DestinationError:
            # A draft that a finished job has sealed stays, so that `recover` finds it.
            (self.suspend if self._is_sealed else self.abort)()
            raise
        self._draft = None
        return self._path

    def abort(self) -> None:
        """Remove the temporary file.

        Raises:
            DestinationError: if it cannot be removed. The message names it.
        """
        draft, self._draft = self._draft, None
        if draft is not None:
            with self._errors(f"remove the temporary file {shown(draft.path or self._target)} of"):
                draft.discard()

    def snapshot(self) -> State:
        """Return the numbers of records and bytes written, and the path of the temporary file."""
        return {"written": self._written, "bytes": self._bytes, "draft": self._open_draft().path}

    def persist(self, state: State, place: StagingArea) -> State:
        """Make the temporary file durable, under a name that holds the job's token; see `Writer.persist`."""
        with self._errors("make durable"):
            draft = self._open_draft()
            path = draft.adopt(place.token)
            draft.sync()
        return {**state, "draft": path}

    def suspend(self) -> None:
        """Close the temporary file and leave it in place."""
        draft, self._draft = self._draft, None
        if draft is not None:
            with self._errors("close"):
                draft.suspend()

    def seal(self, place: StagingArea) -> State:  # noqa: ARG002
        """Complete the temporary file, header included; see `Writer.seal`."""
        return {**self.snapshot(), **self.complete_draft()._asdict()}

    def complete_draft(self) -> Sealed:
        """Complete the temporary file, which `commit` gives its name, and return its properties.

        Raises:
            DestinationError: if records are missing, or the disk refuses.
        """
        self._require_complete()
        with self._errors("complete"):
            draft = self._open_draft()
            self._write_last(draft)
            sealed = draft.seal()
        self._is_sealed = True
        return sealed

    def _write_last(self, draft: AnyDraft) -> None:
        self._sink.complete(draft, self._spec, None if self._spec.stream is None else self._written, self._bytes)

    def _require_complete(self) -> None:
        length = self._spec.length
        if length is not None and self._written != length:
            raise DestinationError(
                f"cannot complete {shown(self._target)}: records are missing",
                element=self.element,
                site=self._site,
                expected=f"{length} records",
                got=f"{self._written}",
            )

    def _complete(self) -> None:
        with self._errors("complete"):
            draft = self._open_draft()
            if not self._is_sealed:
                self._write_last(draft)
            draft.uncached = self.uncached
            draft.commit()

    def _open_draft(self) -> AnyDraft:
        if self._draft is None:
            raise DestinationError(
                "cannot write to this file: it is no longer open", element=self.element, site=self._site
            )
        return self._draft

    def _require_replaceable(self) -> None:
        """Check that nothing has the name that cannot be replaced, such as a folder, a device or a pipe.

        Raises:
            DestinationError: if something has.
        """
        with self._errors("look at"):
            other = self._sink.in_the_way()
        if other is not None:
            what, hint = other
            raise DestinationError(
                f"cannot write {shown(self._target)}: it is {what}",
                element=self.element,
                site=self._site,
                expected="a new name, or a file to replace",
                hint=hint,
            )

    @contextlib.contextmanager
    def _errors(self, doing: str, records: tuple[int, int] | None = None) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            text, hint = explain(error)
            raise DestinationError(
                f"cannot {doing} {shown(self._target)}: {text}",
                element=self.element,
                site=self._site,
                records=records,
                hint=hint,
            ) from error


def file_path(path: str | os.PathLike[str], name: str | None) -> str:
    """Return the path as text.

    Raises:
        SpecError: if no file can have it.
    """
    try:
        text = path_text(path)
    except ValueError:
        text = ""
    if os.path.basename(text):
        return text
    raise SpecError(
        "cannot use this as the path of a file",
        element=name,
        site=user_site(),
        expected="a str or os.PathLike that ends in a file name, and is no URL",
        got=short_repr(path),
        hint="x >> fc.save(path)" if isinstance(path, Element) else None,
    )
