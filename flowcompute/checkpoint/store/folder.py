"""The folder that a frozen job is kept in: one owner, numbered generations, one moment of commit.

Immutable files and one pointer. A commit writes the files of a new generation, makes them and their names durable,
and replaces HEAD, which is the moment from which it counts. A crash at any point leaves the generation before or
the new one. A new folder is built beside its path and appears, complete with its first generation, by one rename.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from flowcompute.checkpoint.store import generations as stored
from flowcompute.checkpoint.store.contents import Contents, Generation, GenerationStatus, is_ours
from flowcompute.checkpoint.store.durable_files import FOLDER_MODE, naming, sync_folder
from flowcompute.checkpoint.store.envelope import seal
from flowcompute.checkpoint.store.head import Head, read_head, write_head
from flowcompute.checkpoint.store.lock import LOCK, Lock, take
from flowcompute.checkpoint.store.retention import Retention
from flowcompute.checkpoint.store.side_files import SideFile
from flowcompute.checkpoint.store.values import Blob, DamagedError, SideMark, blob_of, side_name
from flowcompute.elements import warn_at
from flowcompute.errors import CheckpointError, CheckpointWarning, Site
from flowcompute.files import FILES, Files, path_text, shown


class CheckpointFolder:
    """One frozen job on disk. Made by `create`, `open` or `peek`; given back by `close`, or as a context manager.

    May be used from several threads.

    Attributes:
        path: where it is, or will be once it is published; absolute.
        site: the user's line that warnings name; None for whoever calls.
    """

    def __init__(self, path: str, folder: str, files: Files, lock: Lock | None, token: str | None) -> None:
        self.path = path
        self.site: Site | None = None
        self._files = files
        self._contents = Contents(files, folder)
        self._retention = Retention()
        self._lock = lock
        self._token = token
        self._published = token is None
        self._job: bytes | None = None
        self._sides: dict[str, SideFile] = {}
        self._mutex = threading.RLock()
        self._closed = False
        self._settled = False

    @classmethod
    def create(cls, path: str | os.PathLike[str], files: Files = FILES) -> CheckpointFolder:
        """A new checkpoint, locked and invisible until `publish`.

        Raises:
            CheckpointError: if there is one, if it is being made by another process, or if the disk refuses.
        """
        path = absolute_path(path)
        folder = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.building")
        _require_absent(path, files)
        with naming("create", folder):
            # It is there if a process was killed while it made one; the lock tells whether that one still lives.
            with contextlib.suppress(FileExistsError):
                files.make_folder(folder, FOLDER_MODE)
            if not files.is_folder(folder):
                raise CheckpointError(f"{shown(folder)} is in the way", hint="remove it, or choose another path")
        made = cls(path, folder, files, take(files, folder, path), secrets.token_hex(16))
        try:
            _require_absent(path, files)
            made._contents.remove(made._contents.names())
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    def open(cls, path: str | os.PathLike[str], files: Files = FILES) -> CheckpointFolder:
        """An existing checkpoint, locked.

        Raises:
            CheckpointError: if there is none, if another process has it (which is named), or if the disk refuses.
        """
        path = absolute_path(path)
        _require_checkpoint(path, files)
        return cls(path, path, files, take(files, path, path), None)

    @classmethod
    def peek(cls, path: str | os.PathLike[str], files: Files = FILES) -> CheckpointFolder:
        """An existing checkpoint to be looked at, also while another process owns it; nothing can be written.

        Raises:
            CheckpointError: if there is none.
        """
        path = absolute_path(path)
        _require_checkpoint(path, files)
        return cls(path, path, files, None, None)

    @staticmethod
    def exists(path: str | os.PathLike[str], files: Files = FILES) -> bool:
        """Whether something is at this path. An empty folder counts as nothing: a checkpoint never is one."""
        path = absolute_path(path)
        with naming("look at", path):
            try:
                return bool(files.list_folder(path))
            except FileNotFoundError:
                return False
            except NotADirectoryError:
                return True

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def token(self) -> str:
        """Random hexadecimal text, made with the checkpoint and kept in each generation: it names this job's drafts."""
        with self._mutex:
            if self._token is None:
                self.newest()
            assert self._token is not None
            return self._token

    # -- reading --------------------------------------------------------------------------

    def newest(self) -> Generation:
        """The newest generation, verified with all that it refers to.

        When it does not verify an older one is used, and a `CheckpointWarning` says what is wrong. With the lock,
        files of a generation that was begun and never committed are removed.

        Raises:
            CheckpointError: if no generation verifies, or the newest needs a newer version of flowcompute.
        """
        with self._mutex:
            self._require_open()
            return self._choose("read")

    def look(self) -> Generation:
        """As `newest` in bounded memory: arrays are checked too, but come as None."""
        with self._mutex:
            self._require_open()
            return self._choose("checked")

    def _choose(self, arrays: stored.ArraysAre) -> Generation:
        loaded, problems = self._contents.choose(owned=self._lock is not None, arrays=arrays)
        if problems:
            text = f"{shown(self.path)}: {'; '.join(problems)}. Using generation {loaded.number} instead"
            warn_at(self.site, text, CheckpointWarning)
        self._token, self._job = loaded.token, loaded.job
        if self._lock is not None:
            self._settle()
            self._retention.take_up(self._contents, loaded, trusted=not problems)
        return Generation(loaded.number, loaded.created, loaded.body)

    def _settle(self) -> None:
        """Make the names that were found durable: whoever made them may have been killed before that.

        What is resumed from is acted upon (results are given their names, old files removed), so no power cut
        may bring back what was before it.
        """
        if self._published and not self._settled:
            sync_folder(self._files, self._folder)
            sync_folder(self._files, os.path.dirname(self.path))
            self._settled = True

    def verify(self) -> list[str]:
        """What is wrong with any file that counts, one line each, found in bounded memory; empty where all is sound."""
        with self._mutex:
            self._require_open()
            return self._contents.verify()

    def generations(self) -> list[GenerationStatus]:
        """What is there, oldest first, each verified in bounded memory."""
        with self._mutex:
            self._require_open()
            try:
                head: Head | None = read_head(self._files, self._contents.folder)
            except DamagedError:
                head = None
            return self._contents.statuses(head)

    def job(self) -> dict[str, Any]:
        """What was given to `set_job`.

        Raises:
            CheckpointError: if nothing was, or its file is damaged.
        """
        with self._mutex:
            self._require_open()
            if self._token is None:
                self.newest()
            if self._job is None:
                raise CheckpointError(
                    f"{shown(self.path)} holds no job", hint="choose another path: nothing is frozen here"
                )
            return stored.read_job(self._files, self._folder, self._job)[0]

    def get_blob(self, blob: Blob) -> np.ndarray:
        """The array that was put, in memory of its own.

        Raises:
            CheckpointError: if its file is missing or damaged.
        """
        with self._mutex:
            self._require_open()
            return stored.read_blob(self._files, self._folder, blob)

    # -- writing --------------------------------------------------------------------------

    def set_job(self, body: Mapping[str, Any]) -> None:
        """Store what stays the same in all generations, once, before the first commit.

        Args:
            body: plain data, arrays as blobs.

        Raises:
            CheckpointError: if it cannot be stored.
        """
        with self._mutex:
            self._require_owner()
            if self._published or self._retention.kept or self._job is not None:
                raise ValueError("the job is set once, before the first commit")
            self._job, blobs = stored.write_job(self._files, self._folder, self.token, body)
            self._retention.job(blobs)

    def put_blob(self, array: np.ndarray) -> Blob:
        """Store an immutable array; one that is there already is not stored again.

        It is kept while a generation or the job refers to it, and until one did.

        Raises:
            CheckpointError: if its dtype cannot be stored, or the disk refuses.
        """
        blob, content = blob_of(array)
        with self._mutex:
            self._require_owner()
            if blob.sha256 not in self._retention.stored:
                try:
                    stored.check_blob(self._files, self._folder, blob)
                except DamagedError:
                    stored.write_blob(self._files, self._folder, blob, content)
            self._retention.put(blob)
        return blob

    def side(self, name: str) -> SideFile:
        """An append-only file beside the generations, made when it is missing.

        Args:
            name: up to 64 letters, digits, `-` and `_`.

        Raises:
            CheckpointError: if it cannot be opened.
        """
        side_name(name)
        with self._mutex:
            self._require_open()
            old = self._sides.get(name)
            if old is not None and not old.closed:
                raise ValueError(f"the side file {name!r} is open already")
            made = SideFile(self._files, self._folder, name, writable=self._lock is not None)
            self._sides[name] = made
            return made

    def commit(self, body: Mapping[str, Any]) -> int:
        """Store a new generation; when this returns it is durable (the first one when `publish` does).

        Side files that the body has marks of are made durable first.

        Args:
            body: plain data, as for `encode`; its arrays must not change until this returns.

        Returns:
            The number of the generation.

        Raises:
            CheckpointError: if it cannot be stored. The generation before is what counts then, or, where only
                the last step of making it durable failed, possibly this one.
        """
        with self._mutex:
            self._require_owner()
            if self._token is None:
                self.newest()
            number, kept = self._retention.next, self._retention.kept
            fields = {
                "generation": number,
                "parent": kept[-1] if kept else None,
                "token": self._token,
                "job": self._job,
            }
            sealed = seal({**fields, "body": body})
            self._sync_sides(sealed.marks)
            # A number is never used twice: what failed under it cannot be taken for what comes next.
            self._retention.next += 1
            stored.write_generation(self._files, self._folder, number, sealed)
            self._sync_names()
            write_head(self._files, self._folder, Head(number, sealed.data[-32:]))
            # It may count from here on, even if the next line fails.
            self._retention.committed(number, sealed.blobs)
            self._sync_names()
            try:
                self._retention.tidy(self._contents)
            except CheckpointError as error:
                warn_at(self.site, f"an old generation stays: {error.message}", CheckpointWarning)
            return number

    def publish(self) -> None:
        """Let the folder appear under its path, after the first commit.

        Raises:
            CheckpointError: if something else appeared there, or the disk refuses.
        """
        with self._mutex:
            self._require_owner()
            if self._published or not self._retention.kept:
                raise ValueError("a checkpoint is published once, after its first commit")
            sync_folder(self._files, self._folder)
            with naming("create", self.path):
                self._files.rename_folder(self._folder, self.path)
            self._contents.folder, self._published = self.path, True
            sync_folder(self._files, os.path.dirname(self.path))
            self._settled = True

    def close(self) -> None:
        """Give the lock back; what was never published is removed. Harmless when called twice."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            # Whatever fails, the rest is closed too: the lock must not outlive this.
            with contextlib.ExitStack() as stack:
                if self._lock is not None:
                    stack.callback(self._unlock, self._lock)
                for one in self._sides.values():
                    stack.callback(one.close)

    def _unlock(self, lock: Lock) -> None:
        if not self._published and lock.held:
            # What is left is taken over by whoever creates this checkpoint next.
            with contextlib.suppress(OSError, CheckpointError):
                self._contents.remove([*self._contents.names(), LOCK])
                self._files.remove_folder(self._folder)
        with naming("close", self.path):
            lock.release()

    def _sync_sides(self, marks: Iterable[SideMark]) -> None:
        for mark in marks:
            open_one = self._sides.get(mark.name)
            if open_one is not None and not open_one.closed:
                open_one.fsync()

    def _sync_names(self) -> None:
        # Before the folder is published nobody sees its names: publishing makes them durable.
        if self._published:
            sync_folder(self._files, self._folder)

    @property
    def _folder(self) -> str:
        return self._contents.folder

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError("the checkpoint is closed")

    def _require_owner(self) -> None:
        self._require_open()
        if self._lock is None:
            raise ValueError("the checkpoint was opened by peek: nothing can be written")
        if not self._lock.held:
            raise CheckpointError(
                f"{shown(self.path)} belongs to the process that this one was forked from",
                hint='use it there, or start processes with multiprocessing.get_context("spawn")',
            )


def absolute_path(path: str | os.PathLike[str]) -> str:
    """Where a checkpoint is meant to be.

    Raises:
        CheckpointError: if no folder can have this path.
    """
    try:
        return os.path.abspath(path_text(path))
    except ValueError as error:
        raise CheckpointError(str(error), hint="give the path of a folder") from error


def _require_absent(path: str, files: Files) -> None:
    if CheckpointFolder.exists(path, files):
        raise CheckpointError(f"{shown(path)} is there already", hint="resume it, remove it, or choose another path")


def _require_checkpoint(path: str, files: Files) -> None:
    with naming("open", path):
        try:
            names = files.list_folder(path)
        except NotADirectoryError:
            names = None
    if names is None or not any(is_ours(name) for name in names):
        raise CheckpointError(
            f"{shown(path)} is not a checkpoint",
            got="no folder" if names is None else "a folder without generations",
            hint="choose another path: a checkpoint is a folder of its own",
        )
