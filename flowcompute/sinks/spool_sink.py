"""Keeps a stream in a temporary file for later passes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element, GrowingFile, StagingArea, State, Writer
from flowcompute.errors import CheckpointError, DestinationError
from flowcompute.files import Scratch, ScratchFullError, explain
from flowcompute.spec import Spec

_CHUNK_BYTES = 1 << 22


class SpoolSink(Destination):
    """Writes a temporary file. Only made by the planner."""

    scratch: Scratch

    def __init__(self, scratch: Scratch, element: Element, name: str) -> None:
        super().__init__(element.spec, (element,), name=name)
        self.freeze_fields(scratch=scratch, site=element.site)

    def open(self, spec: Spec) -> SpoolWriter:
        """Make the file.

        Raises:
            DestinationError: if there can be none.
        """
        del spec
        return SpoolWriter(self)

    def open_at(self, spec: Spec, place: StagingArea) -> SpoolWriter:
        """As `open`, with a file of the checkpoint.

        Raises:
            DestinationError: if there can be none.
        """
        del spec
        return SpoolWriter(self, place.side())

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> SpoolWriter:
        """Go on with the file of the checkpoint.

        Raises:
            CheckpointError: if it does not hold what was written.
            DestinationError: if it cannot be used.
        """
        del spec
        return SpoolWriter(self, place.side(), state)


class SpoolWriter(Writer):
    """Writes a temporary file, which vanishes when the run commits or aborts."""

    def __init__(self, sink: SpoolSink, side: GrowingFile | None = None, state: State | None = None) -> None:
        self._sink = sink
        self._scratch = sink.scratch
        self._side = side
        # What was copied into the checkpoint, or found there.
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
                "the temporary file would outgrow its limit",
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
        """How much was kept."""
        return {"size_bytes": self._scratch.size_bytes, "records": self._scratch.records}

    def persist(self, state: State, place: StagingArea) -> State:
        """Make it durable; what lies in a file without a name is copied into the checkpoint."""
        side, size = place.side(), int(state["size_bytes"])
        try:
            while self._hashed_bytes < size:
                part = memoryview(bytearray(min(_CHUNK_BYTES, size - self._hashed_bytes)))
                part = part[: self._scratch.read_into(part, self._hashed_bytes)]
                if self._side is None:
                    side.write_at(part, self._hashed_bytes)
                self._digest.update(part)
                self._hashed_bytes += len(part)
        except OSError as error:
            raise self._failed(error) from error
        side.fsync()
        return {**state, "sha256": self._digest.digest()}

    def _verify(self, state: State) -> None:
        """Refuse a file that does not hold what was written."""
        size = int(state["size_bytes"])
        buffer = memoryview(bytearray(min(_CHUNK_BYTES, size)))
        while self._hashed_bytes < size:
            part = buffer[: size - self._hashed_bytes]
            count = self._scratch.read_into(part, self._hashed_bytes)
            if not count:
                break
            self._digest.update(part[:count])
            self._hashed_bytes += count
        if self._digest.digest() != state["sha256"]:
            raise CheckpointError(
                "the checkpoint does not hold what was kept of this stream",
                element=self._sink.name,
                site=self._sink.site,
                expected=f"{size} bytes",
                got="others, or fewer",
                hint="remove the checkpoint to begin anew",
            )

    def suspend(self) -> None:
        """The file of the checkpoint stays as it is."""
        self._scratch.close()

    def commit(self) -> Any:
        """The run is over: nothing needs the file any more."""
        self._scratch.close()

    def abort(self) -> None:
        """Give the bytes back."""
        self._scratch.close()

    def _failed(self, error: OSError) -> DestinationError:
        text, hint = explain(error)
        message = f"cannot write a temporary file in {self._scratch.folder}: {text}"
        return DestinationError(message, element=self._sink.name, site=self._sink.site, hint=hint)
