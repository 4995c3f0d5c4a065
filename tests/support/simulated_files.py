"""The file layer on a disk in memory: with a log, with crashes at any operation, and with faults."""

from __future__ import annotations

import errno
import fnmatch
import mmap
import os
import stat
from typing import Literal

from flowcompute.files import Files
from tests.support.disk import ROOT, Disk, Effect, Names, Step, Truncate, Write

Moment = Literal["before", "after", "torn"]
"""When a crash comes: before an operation, after it, or in the middle of what it writes."""


class Crash(BaseException):
    """The process is gone: raised by the operation that it stopped at and by all later ones."""


class SimulatedFiles(Files):
    """The file layer on a `Disk`, with a log, crashes and faults. Paths are absolute.

    Args:
        disk: what is there, all of it durable; changed in place.
        crash_at: the operation (from 0, of those in the log) at which the process ends.
        moment: when exactly.
        fail_at: the operation that fails.
        error: the errno it fails with.
        deaf_to: the number of a sync (from 0) that does nothing, as if it were missing in the program.

    Attributes:
        disk: as the process sees it.
        log: operations that change something or make it durable, in order.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        crash_at: int | None = None,
        moment: Moment = "before",
        fail_at: int | None = None,
        error: int = errno.EIO,
        deaf_to: int | None = None,
    ) -> None:
        self.disk = disk
        self.log: list[Step] = []
        self._crash_at = crash_at
        self._moment = moment
        self._fail_at = fail_at
        self._error = error
        self._deaf_to = deaf_to
        self._syncs = 0
        self._crashed = False
        self._handles: dict[int, int] = {}
        self._paths: dict[int, str] = {}
        self._locks: dict[int, int] = {}
        self._last_handle = 1000

    def step(self, name: str, path: str, effect: Effect | None = None, synced: int | None = None) -> None:
        """Do one operation, unless the process ends or it fails."""
        self._alive()
        index = len(self.log)
        self.log.append(Step(name, path))
        if index == self._fail_at:
            raise OSError(self._error, os.strerror(self._error), path)
        if index == self._crash_at:
            self._crashed = True
            if self._moment == "torn" and isinstance(effect, Write):
                effect = effect._replace(data=effect.data[: len(effect.data) // 2])
            elif self._moment != "after":
                effect = None
        if synced is not None:
            if self._syncs == self._deaf_to:
                synced = None
            self._syncs += 1
        self.log[index] = Step(name, path, effect, synced)
        if effect is not None:
            self.disk.apply(effect)
        self._alive()

    def _alive(self) -> None:
        if self._crashed:
            raise Crash

    def find(self, path: str) -> int:
        """The number of what lies at a path."""
        number = ROOT
        for name in _parts(path):
            names = self.disk.folders.get(number)
            if names is None:
                raise _error(errno.ENOTDIR, path)
            if name not in names:
                raise _error(errno.ENOENT, path)
            number = names[name]
        return number

    def _slot(self, path: str) -> tuple[int, str, int | None]:
        """The folder of a path, its name there, and what lies there."""
        *above, name = _parts(path)
        folder = self.find("/" + "/".join(above))
        if folder not in self.disk.folders:
            raise _error(errno.ENOTDIR, path)
        return folder, name, self.disk.folders[folder].get(name)

    def _file(self, path: str) -> int:
        number = self.find(path)
        if number not in self.disk.files:
            raise _error(errno.EISDIR, path)
        return number

    def _opened(self, number: int, path: str) -> int:
        self._last_handle += 1
        self._handles[self._last_handle] = number
        self._paths[self._last_handle] = path
        return self._last_handle

    # -- reading --------------------------------------------------------------------------

    def open_read(self, path: str) -> int:
        """As `Files`."""
        self._alive()
        return self._opened(self._file(path), path)

    def _read_some(self, handle: int, buffer: memoryview, offset: int) -> int:
        self._alive()
        data = self.disk.files[self._handles[handle]][offset : offset + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def map_read(self, handle: int, size: int) -> mmap.mmap:
        """As `Files`, but a copy."""
        copy = mmap.mmap(-1, size)
        copy.write(self.disk.files[self._handles[handle]][:size])
        return copy

    def open_direct(self, path: str) -> int:
        """Refused: this disk has no cache to read past."""
        raise _error(errno.EINVAL, path)

    def read_direct(self, handle: int, buffer: memoryview, offset: int) -> int:
        """Refused, as `open_direct`."""
        raise _error(errno.EINVAL, str(handle))

    def open_memory(self, size: int) -> int:
        """Refused, as `open_direct`."""
        raise _error(errno.ENOSYS, str(size))

    def show(self, mapping: mmap.mmap, begin: int, end: int, handle: int, offset: int) -> None:
        """Refused, as `open_direct`."""
        raise _error(errno.ENOSYS, str(handle))

    def let_go(self, handle: int, begin: int, end: int) -> None:
        """As `Files`: this disk has no cache."""

    def stat(self, path: str) -> os.stat_result:
        """As `Files`; times are 0."""
        self._alive()
        return self._status(self.find(path))

    def lstat(self, path: str) -> os.stat_result:
        """As `Files`; there are no links."""
        return self.stat(path)

    def status(self, handle: int) -> os.stat_result:
        """As `Files`; times are 0."""
        self._alive()
        return self._status(self._handles[handle])

    def _status(self, number: int) -> os.stat_result:
        data = self.disk.files.get(number)
        mode = stat.S_IFDIR | 0o700 if data is None else stat.S_IFREG | 0o600
        fields = (mode, number, 1, 1, 0, 0, len(data or b""), 0, 0, 0)
        return os.stat_result(fields, {"st_mtime_ns": 0})

    def matching(self, pattern: str) -> list[str]:
        """As `Files`, with `*` that spans folders."""
        self._alive()
        return [path for path in self.disk.tree() if fnmatch.fnmatchcase(path, pattern)]

    def list_folder(self, path: str) -> list[str]:
        """As `Files`."""
        self._alive()
        number = self.find(path)
        if number not in self.disk.folders:
            raise _error(errno.ENOTDIR, path)
        return sorted(self.disk.folders[number])

    def is_folder(self, path: str) -> bool:
        """As `Files`."""
        self._alive()
        return self.find(path) in self.disk.folders

    # -- writing --------------------------------------------------------------------------

    def create(self, path: str, mode: int = 0o600) -> int:
        """As `Files`."""
        folder, name, old = self._slot(path)
        if old is not None:
            raise _error(errno.EEXIST, path)
        self.disk.last = number = self.disk.last + 1
        self.step("create", path, Names(((folder, name, number),), makes="file"))
        return self._opened(number, path)

    def create_temporary(self, target: str, mode: int = 0o666) -> tuple[int, str]:
        """As `Files`, under a name that is the same in each run, and no other run's."""
        folder, name = os.path.split(target)
        # What earlier runs of the disk have left keeps its name.
        path = os.path.join(folder, f".{name[:48]}.{self.new_token()}.partial")
        return self.create(path, mode), path

    def begin_temporary(self, path: str, mode: int = 0o666) -> int:
        """As `Files`."""
        handle = self.open_update(path, create=True, mode=mode)
        self.truncate(handle, 0)
        return handle

    def reopen_temporary(self, path: str, size: int) -> int:
        """As `Files`."""
        handle = self.open_update(path)
        if self.status(handle).st_size < size:
            raise OSError(errno.EIO, "it is shorter than it was", path)
        self.truncate(handle, size)
        return handle

    def open_update(self, path: str, *, create: bool = False, mode: int = 0o600) -> int:
        """As `Files`."""
        self._alive()
        if create and self._slot(path)[2] is None:
            return self.create(path, mode)
        return self._opened(self._file(path), path)

    def _write_some(self, handle: int, data: memoryview, offset: int) -> int:
        self.step("write", self._paths[handle], Write(self._handles[handle], offset, bytes(data)))
        return len(data)

    def truncate(self, handle: int, size: int) -> None:
        """As `Files`."""
        self.step("truncate", self._paths[handle], Truncate(self._handles[handle], size))

    def set_mode(self, handle: int, mode: int) -> None:
        """Nothing: there is one user here."""

    def fsync(self, handle: int) -> None:
        """As `Files`."""
        self.step("fsync", self._paths[handle], synced=self._handles[handle])

    def fsync_folder(self, folder: str) -> None:
        """As `Files`."""
        self.step("fsync_folder", folder, synced=self.find(folder))

    def close(self, handle: int) -> None:
        """As `Files`."""
        self._alive()
        number = self._handles.pop(handle)
        if self._locks.get(number) == handle:
            del self._locks[number]

    def lock(self, handle: int) -> bool:
        """As `Files`."""
        self._alive()
        return self._locks.setdefault(self._handles[handle], handle) == handle

    def hold(self, handle: int) -> bool:
        """As `Files`; nobody removes drafts here."""
        self.lock(handle)
        return True

    def free_bytes(self, path: str) -> int:
        """Much: these disks are never full."""
        self.find(path)
        return 1 << 50

    def replace(self, path: str, target: str) -> None:
        """As `Files`."""
        self._rename("replace", path, target)

    def rename_folder(self, path: str, target: str) -> None:
        """As `Files`."""
        there = self._slot(target)[2]
        if there is not None and self.disk.folders.get(there) != {}:
            raise _error(errno.ENOTEMPTY, target)
        self._rename("rename_folder", path, target)

    def _rename(self, step: str, path: str, target: str) -> None:
        number = self.find(path)
        folder, name, _ = self._slot(path)
        to_folder, to_name, _ = self._slot(target)
        self.step(step, target, Names(((folder, name, None), (to_folder, to_name, number))))

    def remove(self, path: str) -> None:
        """As `Files`."""
        self._file(path)
        folder, name, _ = self._slot(path)
        self.step("remove", path, Names(((folder, name, None),)))

    def make_folder(self, path: str, mode: int = 0o700) -> None:
        """As `Files`."""
        folder, name, old = self._slot(path)
        if old is not None:
            raise _error(errno.EEXIST, path)
        self.disk.last = number = self.disk.last + 1
        self.step("make_folder", path, Names(((folder, name, number),), makes="folder"))

    def make_folders(self, path: str, mode: int = 0o700) -> None:
        """As `Files`."""
        parts = _parts(path)
        for count in range(1, len(parts) + 1):
            above = "/" + "/".join(parts[:count])
            if self._slot(above)[2] is None:
                self.make_folder(above, mode)

    def remove_folder(self, path: str) -> None:
        """As `Files`."""
        if self.disk.folders[self.find(path)]:
            raise _error(errno.ENOTEMPTY, path)
        folder, name, _ = self._slot(path)
        self.step("remove_folder", path, Names(((folder, name, None),)))

    def exchange_folders(self, path: str, target: str) -> None:
        """As `Files`."""
        one, two = self.find(path), self.find(target)
        folder, name, _ = self._slot(path)
        to_folder, to_name, _ = self._slot(target)
        self.step("exchange_folders", target, Names(((folder, name, two), (to_folder, to_name, one))))

    def open_folder(self, path: str) -> int:
        """As `Files`."""
        self._alive()
        number = self.find(path)
        if number not in self.disk.folders:
            raise _error(errno.ENOTDIR, path)
        return self._opened(number, path)

    def new_token(self) -> str:
        """Return a token that is the same in each run, and no other run's."""
        return f"{self.disk.last + 1:016x}"


def _parts(path: str) -> list[str]:
    return path.strip("/").split("/") if path != "/" else []


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
