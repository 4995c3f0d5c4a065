"""Memory that lies over mapped files: parts are read into it past the system's cache, and it is used again and again.

A page of the system's cache is found, entered, mapped and let go again, one by one. For parts that pass, that takes
longer than to read them.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import weakref
from collections.abc import Callable
from functools import partial

from flowcompute.files.file_layer import Files
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class OverlaidPart:
    """A part of a mapped file.

    Attributes:
        mapping: all of the file, or its first bytes.
        handle: the open file, as the mapping was made of it.
        begin, end: bytes of the file, at page boundaries.
        offset: bytes of the memory before the part.
    """

    mapping: mmap.mmap
    handle: int
    begin: int
    end: int
    offset: int


class OverlaidParts:
    """Parts of mapped files whose memory lies over their mapping from when they are read to when they are given back.

    Before and after, the mapping shows the file. So whoever reads there reads the bytes of the file at any time, and
    the memory takes another part only when it lies over none.

    Args:
        files: the file layer.
        part_bytes: of the largest part.
        room_bytes: of the memory at most. It is taken as it is needed.

    Raises:
        OSError: if the system has no such memory, or there is no room for a part.
    """

    def __init__(self, files: Files, part_bytes: int, room_bytes: int) -> None:
        # Parts begin and end within a page.
        slot_bytes = (-(-part_bytes // mmap.PAGESIZE) + 1) * mmap.PAGESIZE
        size = room_bytes // slot_bytes * slot_bytes
        if size <= 0:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        self._files = files
        with contextlib.ExitStack() as stack:
            self._handle = files.open_memory(size)
            stack.callback(files.close, self._handle)
            self._memory = mmap.mmap(self._handle, size)
            stack.pop_all()
        self._free = [*range(0, size, slot_bytes)][::-1]
        self._fails = False
        self._begun: list[OverlaidPart] = []
        _ALIVE.add(self)

    @property
    def works(self) -> bool:
        """Flag that no read has failed."""
        return not self._fails

    @property
    def begun(self) -> int:
        """Number of parts that were begun and not given back."""
        return len(self._begun)

    @property
    def free(self) -> int:
        """Number of parts that there is room for."""
        return len(self._free)

    def begin(self, mapping: mmap.mmap, handle: int, direct: int, begin: int, end: int) -> Callable[[], None] | None:
        """Return what reads a part and lays it over its mapping, in any thread.

        Where a read fails, the mapping shows the file, and whoever reads there meets the error.

        Args:
            mapping: of the file.
            handle: of which it was made.
            direct: the same file, from `Files.open_direct`.
            begin, end: bytes of the file.

        Returns:
            None where there is no room, or a read has failed: a file system may want other sizes than pages.

        Raises:
            ValueError: if the part is not within the mapping. Other memory of the process lies beyond it.
        """
        if not 0 <= begin < end <= len(mapping):
            raise ValueError(
                f"cannot lay memory over a mapping: got bytes {begin} to {end}, expected 0 to {len(mapping)}; "
                "ask for a part of the file"
            )
        if self._fails or not self._free:
            return None
        begin, end = begin // mmap.PAGESIZE * mmap.PAGESIZE, -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        part = OverlaidPart(mapping, handle, begin, end, self._free.pop())
        self._begun.append(part)
        return partial(self._read, part, direct)

    def _read(self, part: OverlaidPart, direct: int) -> None:
        size, least = part.end - part.begin, min(part.end, len(part.mapping)) - part.begin
        try:
            with memoryview(self._memory)[part.offset : part.offset + size] as room:
                read = self._files.read_direct(direct, room, part.begin)
            if read >= least:
                self._files.show(part.mapping, part.begin, part.end, self._handle, part.offset)
            else:
                self._fails = True
        except OSError:
            self._fails = True

    def give_back(self, count: int) -> None:
        """Let mappings show the file where the first parts lie of those that were begun. Their reads have ended.

        Args:
            count: of parts.
        """
        for part in self._begun[:count]:
            # Memory that cannot be taken away stays where it is, and holds what belongs there.
            is_shown = False
            with contextlib.suppress(OSError):
                self._files.show(part.mapping, part.begin, part.end, part.handle, part.begin)
                is_shown = True
            # Another thread may fork at any time, and the child shows the file for the parts that are in here. An
            # interrupt may come as well: a part that is in here is given back again, so its memory is not free yet.
            del self._begun[0]
            if is_shown:
                self._free.append(part.offset)
                with contextlib.suppress(OSError):
                    # The system keeps one piece of what lies side by side and is read alike.
                    self._files.read_alone(part.mapping, part.begin, part.end)

    def leave(self) -> None:
        """Give all parts back, and take no more: somebody else has the memory."""
        self.give_back(len(self._begun))
        self._free = []

    def close(self) -> None:
        """Give all parts and the memory back. No read may be in progress. Calling it twice does nothing."""
        self.leave()
        if self._handle >= 0:
            self._files.close(self._handle)
            self._handle = -1
            self._memory.close()


_ALIVE: weakref.WeakSet[OverlaidParts] = weakref.WeakSet()


def _show_files_in_child() -> None:
    # A child has its parent's mappings, and would see what the parent reads into that memory later.
    for parts in _ALIVE:
        parts.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_show_files_in_child)
