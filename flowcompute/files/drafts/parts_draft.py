"""Results that are folders of parts, each of so many records in a format that cannot be continued in the middle.

Records come as bytes. Those of the part that is open lie as they are in a file of the draft's own. Once the part is
whole, it is encoded from there. So a part is a function of its records alone, and a draft goes on at any byte.

Where several processes write side by side, each encodes the parts that it has written from their first byte on. Those
that a border cuts stay as records, until the process that began the draft completes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Mapping

from flowcompute.files.drafts.file_draft import Draft
from flowcompute.files.drafts.folder_draft import FolderDraft, Pieces
from flowcompute.files.file_layer import Files
from flowcompute.files.file_states import Unfinished
from flowcompute.imports import dataclass

Encode = Callable[[Callable[[memoryview, int], int], int, Callable[[bytes | memoryview, int], None]], None]
"""`encode(read_into, size, write)` writes `size` bytes of records as a file; it raises OSError as the two do."""

_DIGITS = 10
_OPEN = ".rows-"


@dataclass(frozen=True)
class EncodedParts:
    """The files of a folder of parts.

    Attributes:
        size: bytes of records in each but the last.
        suffix: of their names.
        encode: makes one of its records.
    """

    size: int
    suffix: str
    encode: Encode

    def name(self, number: int) -> str:
        """Return the name of a part. Names are in the order of the records."""
        return f"part-{number:0{_DIGITS}}{self.suffix}"


class PartsDraft(FolderDraft):
    """A draft of parts; see `FolderDraft`, whose pieces are the records of parts before they are encoded.

    What a checkpoint has said stays possible to continue: `pin` before `persist`, `unpin` after.

    Args:
        files, target, replaces, durable, token, unfinished, joined: as for `FolderDraft`.
        parts: its files.
    """

    def __init__(
        self,
        files: Files,
        target: str,
        parts: EncodedParts,
        *,
        replaces: bool,
        durable: bool = True,
        token: str | None = None,
        unfinished: Unfinished | None = None,
        joined: str | None = None,
    ) -> None:
        self._parts = parts
        self._is_shared = joined is not None
        self._first: int | None = None if self._is_shared else 0
        self._pins: set[int] = set()
        self._pins_lock = threading.Lock()
        pieces = Pieces(parts.size, _OPEN)
        super().__init__(
            files,
            target,
            pieces,
            replaces=replaces,
            durable=durable,
            token=token,
            unfinished=unfinished,
            joined=joined,
        )

    def _wanted(self, whole: int, rest: int) -> dict[str, int | None]:
        """Return the parts, and the open records; see `FolderDraft._wanted`."""
        wanted: dict[str, int | None] = {self._parts.name(number): None for number in range(whole)}
        if rest:
            wanted[self._pieces.name(whole)] = rest
        return wanted

    def write(self, data: memoryview | bytes, offset: int) -> None:
        """Write bytes of records behind those before them, and encode the parts that are whole now."""
        size, rest = self._parts.size, memoryview(data)
        if self._first is None:
            self._first = offset
        while rest:
            number, at = divmod(offset, size)
            part = rest[: size - at]
            super().write(part, offset)
            rest, offset = rest[len(part) :], offset + len(part)
            if offset % size == 0 and number * size >= self._first:
                (self._encode_for_all if self._is_shared else self._encode)(number, size)
                self._remove_unpinned(number)

    def pin(self, size: int) -> None:
        """Keep the open records of a result of `size` bytes, which a checkpoint is about to mention."""
        with self._pins_lock:
            self._pins.add(size // self._parts.size)

    def unpin(self, size: int) -> None:
        """Let go of the open records of results of less than `size` bytes, which no checkpoint mentions any more."""
        least = size // self._parts.size
        with self._pins_lock:
            old = {number for number in self._pins if number < least}
            self._pins -= old
        for number in old:
            self._remove_unpinned(number)

    def complete(self, size: int, beside: Mapping[str, bytes]) -> None:
        """Encode what is not yet of a result of so many bytes. An empty result has one part, which tells its columns.

        It can be called again, by another process too, where one did not live to see its end.
        """
        assert not beside, "parts tell all"
        whole, rest = divmod(size, self._parts.size)
        there = set(self._files.list_folder(self._inside("")))
        for number in range(whole):
            if self._parts.name(number) not in there:
                self._encode_for_all(number, self._parts.size)
        if (rest or not size) and self._parts.name(whole) not in there:
            self._encode_for_all(whole, rest)

    def _encode(self, number: int, size: int) -> None:
        """Encode a part under its name. A process that dies meanwhile leaves half of it, which no checkpoint counts."""
        name = self._parts.name(number)
        made = self._files.begin_temporary(self._inside(name))
        try:
            self._encode_into(lambda data, at: self._files.write_at(made, data, at), number, size)
        finally:
            self._files.close(made)
        self._changed(name)

    def _encode_for_all(self, number: int, size: int) -> None:
        """Encode a part that gets its name once it is complete and durable: other processes take it as done."""
        made = Draft(self._files, self._inside(self._parts.name(number)), durable=self._durable)
        try:
            self._encode_into(made.write, number, size)
            made.commit()
        except BaseException:
            made.discard()
            raise

    def _encode_into(self, write: Callable[[bytes | memoryview, int], None], number: int, size: int) -> None:
        raw = self._opened(self._pieces.name(number)) if size else -1
        try:
            self._parts.encode(lambda buffer, at: self._files.read_into(raw, buffer, at), size, write)
        finally:
            if size:
                self._files.close(raw)

    def _inside(self, name: str) -> str:
        with self._lock:
            if self._path is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
            return os.path.join(self._path, name)

    def _remove_unpinned(self, number: int) -> None:
        """Remove the records of a part that is encoded, unless a checkpoint mentions them."""
        with self._pins_lock:
            if number in self._pins:
                return
        with self._lock:
            if self._path is None:
                return
            if self._number == number:
                self._close_piece()
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(os.path.join(self._path, self._pieces.name(number)))
