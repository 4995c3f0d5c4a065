"""A file layer that fails on demand, for tests of everything that reads or writes files."""

from __future__ import annotations

import errno
import mmap
import os
from typing import NamedTuple

from flowcompute.files import Files


class Operation(NamedTuple):
    """One call of the file layer; `detail` is its path, or its offset and byte count."""

    name: str
    detail: str


class FaultyFiles(Files):
    """Files whose `fail_at`-th operation (from 0) raises OSError instead of being done.

    Run a scenario once without a fault, look at `len(log)`, then run it again with each
    `fail_at` below that: every place where the system can refuse has then refused once.

    Args:
        fail_at: which operation fails; None for none.
        error: the `errno` it fails with.
        only: names of operations that count; all by default.
        longest: most bytes that one system call reads or writes (short reads and writes).

    Attributes:
        log: the operations asked for, in order, the failed one included.
        handles: descriptors that are open now.
        let_go_of: first and last byte of what the system's cache was to forget.
    """

    def __init__(
        self,
        fail_at: int | None = None,
        error: int = errno.EIO,
        *,
        only: frozenset[str] | None = None,
        longest: int | None = None,
    ) -> None:
        self.log: list[Operation] = []
        self.handles: set[int] = set()
        self.let_go_of: list[tuple[int, int]] = []
        self._fail_at = fail_at
        self._error = error
        self._only = only
        self._longest = longest

    def _step(self, name: str, detail: str) -> None:
        if self._only is not None and name not in self._only:
            return
        index = len(self.log)
        self.log.append(Operation(name, detail))
        if index == self._fail_at:
            raise OSError(self._error, os.strerror(self._error), detail)

    def open_read(self, path: str) -> int:
        """As `Files`, or the fault."""
        self._step("open_read", path)
        handle = super().open_read(path)
        self.handles.add(handle)
        return handle

    def _read_some(self, handle: int, buffer: memoryview, offset: int) -> int:
        self._step("read", f"{offset}+{len(buffer)}")
        return super()._read_some(handle, buffer[: self._longest], offset)

    def map_read(self, handle: int, size: int) -> mmap.mmap:
        """As `Files`, or the fault."""
        self._step("map_read", f"0+{size}")
        return super().map_read(handle, size)

    def open_direct(self, path: str) -> int:
        """As `Files`, or the fault."""
        self._step("open_direct", path)
        handle = super().open_direct(path)
        self.handles.add(handle)
        return handle

    def read_direct(self, handle: int, buffer: memoryview, offset: int) -> int:
        """As `Files`, or the fault."""
        self._step("read_direct", f"{offset}+{len(buffer)}")
        return super().read_direct(handle, buffer, offset)

    def open_memory(self, size: int) -> int:
        """As `Files`, or the fault."""
        self._step("open_memory", str(size))
        handle = super().open_memory(size)
        self.handles.add(handle)
        return handle

    def show(self, mapping: mmap.mmap, begin: int, end: int, handle: int, offset: int) -> None:
        """As `Files`, or the fault."""
        self._step("show", f"{begin}+{end - begin}")
        super().show(mapping, begin, end, handle, offset)

    def let_go(self, handle: int, begin: int, end: int) -> None:
        """As `Files`: advice that the system may refuse without anybody noticing."""
        self.let_go_of.append((begin, end))
        super().let_go(handle, begin, end)

    def stat(self, path: str) -> os.stat_result:
        """As `Files`, or the fault."""
        self._step("stat", path)
        return super().stat(path)

    def lstat(self, path: str) -> os.stat_result:
        """As `Files`, or the fault."""
        self._step("lstat", path)
        return super().lstat(path)

    def status(self, handle: int) -> os.stat_result:
        """As `Files`, or the fault."""
        self._step("status", "")
        return super().status(handle)

    def matching(self, pattern: str) -> list[str]:
        """As `Files`, or the fault."""
        self._step("matching", pattern)
        return super().matching(pattern)

    def create_temporary(self, target: str, mode: int = 0o666) -> tuple[int, str]:
        """As `Files`, or the fault."""
        self._step("create_temporary", target)
        handle, path = super().create_temporary(target, mode)
        self.handles.add(handle)
        return handle, path

    def begin_temporary(self, path: str, mode: int = 0o666) -> int:
        """As `Files`, or the fault."""
        self._step("begin_temporary", path)
        handle = super().begin_temporary(path, mode)
        self.handles.add(handle)
        return handle

    def reopen_temporary(self, path: str, size: int) -> int:
        """As `Files`, or the fault."""
        self._step("reopen_temporary", path)
        handle = super().reopen_temporary(path, size)
        self.handles.add(handle)
        return handle

    def _write_some(self, handle: int, data: memoryview, offset: int) -> int:
        self._step("write", f"{offset}+{len(data)}")
        return super()._write_some(handle, data[: self._longest], offset)

    def truncate(self, handle: int, size: int) -> None:
        """As `Files`, or the fault."""
        self._step("truncate", str(size))
        super().truncate(handle, size)

    def set_mode(self, handle: int, mode: int) -> None:
        """As `Files`, or the fault."""
        self._step("set_mode", oct(mode))
        super().set_mode(handle, mode)

    def fsync(self, handle: int) -> None:
        """As `Files`, or the fault."""
        self._step("fsync", "")
        super().fsync(handle)

    def fsync_folder(self, folder: str) -> None:
        """As `Files`, or the fault."""
        self._step("fsync_folder", folder)
        super().fsync_folder(folder)

    def close(self, handle: int) -> None:
        """As `Files`; when it fails the descriptor is closed all the same, as with the real thing."""
        super().close(handle)
        self.handles.discard(handle)
        self._step("close", "")

    def replace(self, path: str, target: str) -> None:
        """As `Files`, or the fault."""
        self._step("replace", target)
        super().replace(path, target)

    def remove(self, path: str) -> None:
        """As `Files`, or the fault."""
        self._step("remove", path)
        super().remove(path)

    def make_folders(self, path: str, mode: int = 0o700) -> None:
        """As `Files`, or the fault."""
        self._step("make_folders", path)
        super().make_folders(path, mode)

    def list_folder(self, path: str) -> list[str]:
        """As `Files`, or the fault."""
        self._step("list_folder", path)
        return super().list_folder(path)

    def is_folder(self, path: str) -> bool:
        """As `Files`, or the fault."""
        self._step("is_folder", path)
        return super().is_folder(path)

    def make_folder(self, path: str, mode: int = 0o700) -> None:
        """As `Files`, or the fault."""
        self._step("make_folder", path)
        super().make_folder(path, mode)

    def remove_folder(self, path: str) -> None:
        """As `Files`, or the fault."""
        self._step("remove_folder", path)
        super().remove_folder(path)

    def rename_folder(self, path: str, target: str) -> None:
        """As `Files`, or the fault."""
        self._step("rename_folder", target)
        super().rename_folder(path, target)

    def create(self, path: str, mode: int = 0o600) -> int:
        """As `Files`, or the fault."""
        self._step("create", path)
        handle = super().create(path, mode)
        self.handles.add(handle)
        return handle

    def open_update(self, path: str, *, create: bool = False, mode: int = 0o600) -> int:
        """As `Files`, or the fault."""
        self._step("open_update", path)
        handle = super().open_update(path, create=create, mode=mode)
        self.handles.add(handle)
        return handle

    def lock(self, handle: int) -> bool:
        """As `Files`, or the fault."""
        self._step("lock", "")
        return super().lock(handle)

    def hold(self, handle: int) -> bool:
        """As `Files`, which never fails."""
        return super().hold(handle)

    def free_bytes(self, path: str) -> int:
        """As `Files`, or the fault."""
        self._step("free_bytes", path)
        return super().free_bytes(path)

    def open_folder(self, path: str) -> int:
        """As `Files`, or the fault."""
        self._step("open_folder", path)
        handle = super().open_folder(path)
        self.handles.add(handle)
        return handle

    def exchange_folders(self, path: str, target: str) -> None:
        """As `Files`, or the fault."""
        self._step("exchange_folders", target)
        super().exchange_folders(path, target)
