"""Results that are folders: written under a hidden name beside their target, and committed by one rename.

The bytes of a result lie one after the other in files of one size, its **pieces**. So a folder is written, continued
and cut back like a file, at any byte. Files whose names begin with a dot are the draft's own: they count for nothing,
and are removed before the folder gets its name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Mapping

from flowcompute.files.file_layer import Files, temporary_path
from flowcompute.files.file_states import Sealed, Unfinished
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class Pieces:
    """Names and size of the files of a folder.

    Attributes:
        size: bytes of each; the last one is filled up with zeros.
        before, behind: what stands before and behind the number in a name. A single piece has `before` as its name.
        single: whether there is one piece at most.
    """

    size: int
    before: str
    behind: str = ""
    single: bool = False

    def name(self, number: int) -> str:
        """Return the name of a piece."""
        return self.before if self.single else f"{self.before}{number}{self.behind}"


class FolderDraft:
    """A folder that is written under a temporary name beside its target, with the operations of `Draft`.

    `sync` and `adopt` may be called while another thread writes.

    Args:
        files: the file layer.
        target: absolute path of the folder.
        pieces: its files.
        replaces: whether a folder of that name is replaced. Without it, `commit` refuses to.
        durable: whether committing waits until the disk has the folder.
        token: part of the temporary name, random by default. What an earlier process left under that name is removed.
        unfinished: the draft of an earlier process to continue, and how many of its bytes count. OSError is raised if
            it is missing, shorter than recorded, or holds other files.
        joined: the draft of another process, to write into it with others; see `Draft`.

    Attributes:
        uncached: whether the system's cache lets the files go once the disk has them.
    """

    uncached = False

    def __init__(
        self,
        files: Files,
        target: str,
        pieces: Pieces,
        *,
        replaces: bool,
        durable: bool = True,
        token: str | None = None,
        unfinished: Unfinished | None = None,
        joined: str | None = None,
    ) -> None:
        self._files, self._target, self._pieces = files, target, pieces
        self._replaces, self._durable = replaces, durable
        self._lock = threading.Lock()
        self._unsynced: set[str] = set()
        self._is_named = self._committed = False
        self._number, self._handle = -1, -1
        self._path: str | None = None
        if unfinished is not None or joined is not None:
            self._path = joined if unfinished is None else unfinished.path
        else:
            self._path = temporary_path(target, token or files.new_token())
            if token is not None:
                with contextlib.suppress(FileNotFoundError):
                    files.remove_tree(self._path)
            files.make_folder(self._path, 0o777)
        self._folder = -1
        try:
            assert self._path is not None
            self._folder = files.open_folder(self._path)
            if joined is None:
                files.hold(self._folder)
            if unfinished is not None:
                self._cut_back(unfinished)
        except BaseException:
            self._close()
            raise

    def _cut_back(self, unfinished: Unfinished) -> None:
        """Leave the bytes that count, and remove what was written after them."""
        wanted = self._wanted(*divmod(unfinished.size, self._pieces.size or 1))
        for name in self._files.list_folder(unfinished.path):
            path = os.path.join(unfinished.path, name)
            if not stat.S_ISREG(self._files.lstat(path).st_mode):
                raise OSError(errno.EIO, "it holds what is no file of the result", path)
            if name not in wanted:
                self._files.remove(path)
                continue
            size = wanted.pop(name)
            if size is not None:
                self._files.close(self._files.reopen_temporary(path, size))
        if wanted:
            name = min(wanted)
            raise OSError(errno.EIO, f"a file is missing in it: {name}", unfinished.path)

    def _wanted(self, whole: int, rest: int) -> dict[str, int | None]:
        """Return the files of a draft of `whole` pieces and `rest` bytes, and the bytes that count; None for all."""
        wanted: dict[str, int | None] = {self._pieces.name(number): self._pieces.size for number in range(whole)}
        if rest:
            wanted[self._pieces.name(whole)] = rest
        return wanted

    @property
    def path(self) -> str | None:
        """Temporary name, or None where there is none."""
        return self._path

    def adopt(self, token: str) -> str:
        """Give the draft the name that follows from a token, and return it: a checkpoint is about to mention it."""
        path = temporary_path(self._target, token)
        with self._lock:
            if self._path is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
            if self._path != path:
                with contextlib.suppress(FileNotFoundError):
                    self._files.remove_tree(path)
                self._files.rename_folder(self._path, path)
                self._path, self._is_named = path, False
        return path

    def write(self, data: memoryview | bytes, offset: int) -> None:
        """Write all of `data` (bytes) at `offset` of the result."""
        rest = memoryview(data)
        while rest:
            number, at = divmod(offset, self._pieces.size)
            part = rest[: self._pieces.size - at]
            handle = self._piece(number)
            self._files.write_at(handle, part, at)
            self._changed(self._pieces.name(number))
            rest, offset = rest[len(part) :], offset + len(part)

    def _changed(self, name: str) -> None:
        """Mark a file as not durable. Marked before it is written, a `sync` in between would miss what is written."""
        with self._lock:
            self._unsynced.add(name)

    def _piece(self, number: int) -> int:
        """Return the descriptor of a piece."""
        name = self._pieces.name(number)
        with self._lock:
            if self._path is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
            if self._number != number:
                self._close_piece()
                self._handle = self._files.open_update(os.path.join(self._path, name), create=True, mode=0o666)
                self._number = number
            return self._handle

    def let_go(self, begin: int, end: int) -> None:
        """Send what was written between two bytes to the disk; what it has leaves the system's cache."""
        size = self._pieces.size
        for number in range(begin // size, -(-end // size)):
            with contextlib.suppress(OSError):
                handle = self._opened(self._pieces.name(number))
                try:
                    self._files.let_go(handle, max(0, begin - number * size), min(size, end - number * size))
                finally:
                    self._files.close(handle)

    def _opened(self, name: str) -> int:
        with self._lock:
            if self._path is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
            return self._files.open_update(os.path.join(self._path, name))

    def sync(self) -> None:
        """Make what was written so far durable, and the temporary name. Writing may go on meanwhile."""
        if not self._durable:
            return
        with self._lock:
            if self._path is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
            names, self._unsynced = self._unsynced, set()
        for name in sorted(names):
            try:
                handle = self._opened(name)
            except FileNotFoundError:
                if name.startswith("."):
                    continue
                raise
            try:
                self._files.fsync(handle)
            finally:
                self._files.close(handle)
        with self._lock:
            path, is_named, self._is_named = self._path, self._is_named, True
        assert path is not None
        if names:
            self._files.fsync_folder(path)
        if not is_named:
            self._files.fsync_folder(os.path.dirname(self._target))

    def complete(self, size: int, beside: Mapping[str, bytes]) -> None:
        """Fill up the last piece of a result of so many bytes, and write further files."""
        if size and size % self._pieces.size:
            number = size // self._pieces.size
            self._files.truncate(self._piece(number), self._pieces.size)
            self._changed(self._pieces.name(number))
        for name, data in beside.items():
            with self._lock:
                self._close_piece()
                assert self._path is not None
                handle = self._files.begin_temporary(os.path.join(self._path, name))
            try:
                self._files.write_at(handle, data, 0)
            finally:
                self._files.close(handle)
            self._changed(name)

    def seal(self) -> Sealed:
        """Make the draft durable as it is. Only its name is missing, which `commit` gives it."""
        self.sync()
        assert self._path is not None
        return seal_of(self._files, self._path)

    def suspend(self) -> None:
        """Close the draft and leave it in place, so that a later process can continue it."""
        self._path = None
        self._close()

    def commit(self) -> None:
        """Make what was written durable and give it its name. On an error, call `discard`."""
        if self._path is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._target)
        self.sync()
        old = _give_name(self._files, self._path, self._target, replaces=self._replaces, durable=self._durable)
        self._path, self._committed = None, True
        self._close()
        if self._durable:
            self._files.fsync_folder(os.path.dirname(self._target))
        self._replaces = True
        if old is not None:
            self._files.remove_tree(old)

    def discard(self) -> None:
        """Remove what was written. Calling it after `commit` or twice does nothing.

        When `commit` failed after the rename, a new target is removed again, as by `Draft.discard`.
        """
        with contextlib.suppress(OSError):
            self._close()
        path, self._path = self._path, None
        if path is None and self._committed and not self._replaces:
            path, self._replaces = self._target, True
        if path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._files.remove_tree(path)

    def _close_piece(self) -> None:
        handle, self._handle, self._number = self._handle, -1, -1
        if handle >= 0:
            self._files.close(handle)

    def _close(self) -> None:
        try:
            self._close_piece()
        finally:
            folder, self._folder = self._folder, -1
            if folder >= 0:
                self._files.close(folder)


def _give_name(files: Files, path: str, target: str, *, replaces: bool, durable: bool) -> str | None:
    """Rename a draft, less the files of its own, and return where the folder lies that had its name.

    Raises:
        OSError: also where a folder that may not be replaced has the name.
    """
    own = [name for name in files.list_folder(path) if name.startswith(".")]
    for name in own:
        files.remove(os.path.join(path, name))
    if own and durable:
        files.fsync_folder(path)
    try:
        there = files.is_folder(target)
    except FileNotFoundError:
        there = False
    if not (there and replaces):
        files.rename_folder(path, target)
        return None
    files.exchange_folders(path, target)
    return path


def seal_of(files: Files, path: str) -> Sealed:
    """Return the properties that identify a finished file or folder: of a folder, those of its files together.

    Raises:
        OSError: as the system does.
    """
    status = files.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        return Sealed.of(files.stat(path))
    found = [files.lstat(os.path.join(path, name)) for name in files.list_folder(path) if not name.startswith(".")]
    return Sealed(sum(one.st_size for one in found), max((one.st_mtime_ns for one in found), default=0))


def draft_bytes(files: Files, path: str) -> int:
    """Return the bytes of a draft, of a folder those of all its files.

    Raises:
        OSError: as the system does.
    """
    if not files.is_folder(path):
        return files.lstat(path).st_size
    return sum(files.lstat(os.path.join(path, name)).st_size for name in files.list_folder(path))


def roll_folder_forward(
    files: Files, target: str, path: str, sealed: Sealed, *, replaces: bool, durable: bool = True
) -> Sealed | None:
    """Commit a complete draft if it still lies under `path`, and return what is found under the target.

    What the draft has replaced, and nobody has removed, is removed.

    Raises:
        OSError: as the system does.
    """
    # What is half removed of a folder that was replaced may look like the draft.
    if _found(files, target) != sealed and _found(files, path) == sealed:
        _give_name(files, path, target, replaces=replaces, durable=durable)
        if durable:
            files.fsync_folder(os.path.dirname(target))
    found = _found(files, target)
    if found == sealed and replaces and _found(files, path) is not None:
        files.remove_tree(path)
    return found


def _found(files: Files, path: str) -> Sealed | None:
    try:
        return seal_of(files, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
