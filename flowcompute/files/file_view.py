"""Open files of a file layer as Python's file objects, which libraries read from."""

from __future__ import annotations

import io
from collections import OrderedDict
from typing import Any

import numpy as np

from flowcompute.files.file_layer import Files

_BLOCK_BYTES = 1 << 16
_MOST_BLOCKS = 32


class FileView(io.RawIOBase):
    """An open file that is only read. Closing it leaves the file open.

    Libraries read headers a few bytes at a time. Where each read is a request, small ones are served from blocks that
    are kept for a while.

    Args:
        files: the file layer.
        handle: of the open file.
        raises: whether a read that fails raises. Else it reads nothing, as if the file ended there: not all libraries
            can be left by an exception.

    Attributes:
        problem: the first error of a read. Who is given an error by a library looks here first, since libraries rename
            errors; what was read without `raises` counts only if there is none.
    """

    KEPT_BYTES = _BLOCK_BYTES * _MOST_BLOCKS
    """The most bytes of blocks that are kept, of layers that are not local."""

    def __init__(self, files: Files, handle: int, *, raises: bool = True) -> None:
        super().__init__()
        self.problem: OSError | None = None
        self._raises = raises
        self._files, self._handle, self._at = files, handle, 0
        self._size = files.status(handle).st_size
        self._blocks: OrderedDict[int, memoryview] = OrderedDict()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place and return it; see `io.IOBase.seek`."""
        self._at = (0, self._at, self._size)[whence] + offset
        return self._at

    def tell(self) -> int:
        """Return the place that is read next."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` and return the bytes read, fewer only at the end of the file."""
        room = memoryview(buffer).cast("B")
        room = room[: max(0, min(len(room), self._size - self._at))]
        try:
            if self.problem is not None:
                raise self.problem
            if self._files.local or len(room) >= _BLOCK_BYTES:
                count = self._files.read_into(self._handle, room, self._at)
            else:
                count = self._read_kept(room)
        except OSError as error:
            self.problem = error
            if self._raises:
                raise
            return 0
        self._at += count
        return count

    def read(self, size: int = -1) -> Any:
        """Return the next bytes, in memory that nobody has filled before: no copy, as `bytes` would be."""
        left = self._size - self._at
        room = np.empty(max(0, left if size < 0 else min(size, left)), np.uint8)
        return room[: self.readinto(room)].data

    read_buffer = read
    """pyarrow keeps what it returns."""

    def _read_kept(self, room: memoryview) -> int:
        done = 0
        while done < len(room):
            number, at = divmod(self._at + done, _BLOCK_BYTES)
            piece = self._block(number)[at : at + len(room) - done]
            if not piece:
                break
            room[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def _block(self, number: int) -> memoryview:
        block = self._blocks.get(number)
        if block is None:
            begin = number * _BLOCK_BYTES
            block = memoryview(bytearray(min(_BLOCK_BYTES, self._size - begin)))
            block = block[: self._files.read_into(self._handle, block, begin)]
            while len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.popitem(last=False)
            self._blocks[number] = block
        self._blocks.move_to_end(number)
        return block
