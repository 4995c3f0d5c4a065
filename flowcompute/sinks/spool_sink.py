"""Sink that keeps a stream in a temporary file for later passes."""

from __future__ import annotations

import errno
import hashlib
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element, GrowingFile, StagingArea, State, Writer
from flowcompute.errors import CheckpointError, DestinationError
from flowcompute.files import Scratch, ScratchFullError, explain
from flowcompute.spec import Spec

_CHUNK_BYTES = 1 << 22


class SpoolSink(Destination):
    """A destination that writes a temporary file. Only the planner makes it."""

    scratch: Scratch

    def __init__(self, scratch: Scratch, element: Element, name: str) -> None:
        super().__init__(element.spec, (element,), name=name)
        self.freeze_fields(scratch=scratch, site=element.site)

    def open(self, spec: Spec) -> SpoolWriter:
        """Create the file.

        Raises:
            DestinationError: if it cannot be created.
        """
        del spec
        return SpoolWriter(self)

    def open_at(self, spec: Spec, place: StagingArea) -> SpoolWriter:
        """Open a file of the checkpoint for writing.

        Raises:
            DestinationError: if it cannot be created.
        """
        del spec
        return SpoolWriter(self, place.side())

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> SpoolWriter:
        """Continue with the file of the checkpoint.

        Raises:
            CheckpointError: if it does not hold what was written.
            DestinationError: if it cannot be used.
        """
        del spec
        return SpoolWriter(self, place.side(), state)


class SpoolWriter(Writer):
    """Writer of a temporary file, which is removed when the run commits or aborts."""

    def __init__(self, sink: SpoolSink, side: GrowingFile | None = None, state: State | None = None) -> None:
        self._sink = sink
        self._scratch = sink.scratch
        self._side = side
        # Digest of the bytes that were copied into the checkpoint or found there.
        self._digest = hashlib.sha256()
        self._hashed_bytes = 0
        try:
            if side is None or state is None:
                self._scratch.begin(side)
            else:
                self._scratch.resume(side, int(state["size_bytes"]), int(state["records"]))
                self._verify(state)
        except OSError as error:
            raise self._failed(error) from error

    def write(self, array: np.ndarray, start: int) -> None:
        """Append records; see `Writer.write`."""
        try:
            self._scratch.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, len(array))
        except ScratchFullError:
            raise DestinationError(
                "cannot write to the temporary file: it would outgrow its limit",
                element=self._sink.name,
                site=self._sink.site,
                records=(start, start + len(array)),
                expected=f"at most {self._scratch.limit_bytes} bytes in {self._scratch.folder}",
                got=f"{self._scratch.size_bytes + array.nbytes} bytes and perhaps more to come",
                hint="fc.spool(x, folder=..., limit=...) on a larger disk",
            ) from None
        except OSError as error:
            raise self._failed(error) from error

    def snapshot(self) -> State:
        """Return the numbers of bytes and records that were kept."""
        return {"size_bytes": self._scratch.size_bytes, "records": self._scratch.records}

    def persist(self, state: State, place: StagingArea) -> State:
        """Make what was kept durable. The bytes of a file without a name are copied into the checkpoint."""
        side, size = place.side(), int(state["size_bytes"])
        try:
            while self._hashed_bytes < size:
                part = memoryview(bytearray(min(_CHUNK_BYTES, size - self._hashed_bytes)))
                part = part[: self._scratch.read_into(part, self._hashed_bytes)]
                if not part:
                    raise OSError(errno.EIO, f"it ends at byte {self._hashed_bytes}, and {size} were written")
                if self._side is None:
                    side.write_at(part, self._hashed_bytes)
                self._digest.update(part)
                self._hashed_bytes += len(part)
        except OSError as error:
            raise self._failed(error) from error
        side.fsync()
        return {**state, "sha256": self._digest.digest()}

    def _verify(self, state: State) -> None:
        """Check that the file holds what was written.

        Raises:
            CheckpointError: if it does not.
        """
        size = int(state["size_bytes"])
        buffer = memoryview(bytearray(min(_CHUNK_BYTES, size)))
        while self._hashed_bytes < size:
            part = buffer[: size - self._hashed_bytes]
            count = self._scratch.read_into(part, self._hashed_bytes)
            if not count:
                break
            self._digest.update(part[:count])
            self._hashed_bytes += count
        whole = self._hashed_bytes == size == self._scratch.records * self._sink.spec.item_bytes
        if not whole or self._digest.digest() != state["sha256"]:
            raise CheckpointError(
                "cannot resume: the checkpoint does not hold what was kept of this stream",
                element=self._sink.name,
                site=self._sink.site,
                expected=f"{size} bytes",
                got="other bytes, or fewer",
                hint="remove the checkpoint to begin anew",
            )

    def suspend(self) -> None:
        """Leave the file of the checkpoint as it is."""
        self._scratch.close()

    def commit(self) -> Any:
        """Remove the file, which nothing needs after the run."""
        self._scratch.close()

    def abort(self) -> None:
        """Free the bytes."""
        self._scratch.close()

    def _failed(self, error: OSError) -> DestinationError:
        text, hint = explain(error)
        message = f"cannot write a temporary file in {self._scratch.folder}: {text}"
        return DestinationError(message, element=self._sink.name, site=self._sink.site, hint=hint)
