"""Folder of a frozen job: it has one owner and numbered generations, and each commit is one atomic step.

The folder holds immutable files and one pointer, HEAD. A commit writes the files of a new generation, makes
them and their names durable, and replaces HEAD. Replacing HEAD is the moment of the commit. A crash at any
point leaves the generation before or the new one. A new folder is built beside its path and appears by one
rename, complete with its first generation.
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
from flowcompute.checkpoint.store.cluster_job import CLUSTER_JOB
from flowcompute.checkpoint.store.contents import Contents, Generation, GenerationStatus, is_ours
from flowcompute.checkpoint.store.durable_files import FOLDER_MODE, naming_path, sync_folder
from flowcompute.checkpoint.store.envelope import seal
from flowcompute.checkpoint.store.head import Head, read_head, write_head
from flowcompute.checkpoint.store.lock import LOCK, Lock, acquire
from flowcompute.checkpoint.store.retention import Retention
from flowcompute.checkpoint.store.side_files import SideFile
from flowcompute.checkpoint.store.values import Blob, DamagedError, SideMark, blob_of, side_name
from flowcompute.elements import warn_at
from flowcompute.errors import CheckpointError, CheckpointWarning, Site
from flowcompute.files import FILES, Files, path_text, shown


class CheckpointFolder:
    """A frozen job on disk. `create`, `open` and `peek` make it. `close` or a `with` statement releases it.

    Several threads may use it.

    Attributes:
        path: absolute path of the folder, also before it is published.
        site: the user's line that warnings name; None for the line that calls.
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
        self._names_are_durable = False

    @classmethod
    def create(cls, path: str | os.PathLike[str], files: Files = FILES) -> CheckpointFolder:
        """Create a new checkpoint, locked and invisible until `publish`.

        Raises:
            CheckpointError: if there is one, if another process is creating it, or if the disk refuses.
        """
        path = absolute_path(path)
        folder = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.building")
        _require_absent(path, files)
        with naming_path("create", folder):
            # It is there if a process was killed while it made one. The lock tells whether that process still runs.
            with contextlib.suppress(FileExistsError):
                files.make_folder(folder, FOLDER_MODE)
            if not files.is_folder(folder):
                raise CheckpointError(
                    f"cannot create {shown(folder)}: something else has this name",
                    hint="remove it, or choose another path",
                )
        made = cls(path, folder, files, acquire(files, folder, path), secrets.token_hex(16))
        try:
            _require_absent(path, files)
            made._contents.remove(made._contents.names())
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    def open(cls, path: str | os.PathLike[str], files: Files = FILES) -> CheckpointFolder:
        """Open an existing checkpoint and lock it.

        Raises:
            CheckpointError: if there is none, if another process owns it (which is named), or if the disk
                refuses.
        """
        path = absolute_path(path)
        _require_checkpoint(path, files)
        return cls(path, path, files, acquire(files, path, path), None)

    @classmethod
    def peek(cls, path: str | os.PathLike[str], files: Files = FILES) -> CheckpointFolder:
        """Open an existing checkpoint for reading only, also while another process owns it.

        Raises:
            CheckpointError: if there is none.
        """
        path = absolute_path(path)
        _require_checkpoint(path, files)
        return cls(path, path, files, None, None)

    @staticmethod
    def is_at(path: str) -> bool:
        """Check whether a folder with files of a checkpoint is at this path, sound or not."""
        return os.path.isdir(path) and any(map(is_ours, FILES.list_folder(absolute_path(path))))

    @staticmethod
    def exists(path: str | os.PathLike[str], files: Files = FILES) -> bool:
        """Check whether something is at this path.

        An empty folder counts as nothing, since a checkpoint is never empty.
        """
        path = absolute_path(path)
        with naming_path("look at", path):
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
        """Random hexadecimal text, made with the checkpoint and kept in each generation. It names this job's drafts."""
        with self._mutex:
            if self._token is None:
                self.newest()
            assert self._token is not None
            return self._token

    # -- reading --------------------------------------------------------------------------

    def newest(self) -> Generation:
        """Return the newest generation, verified with everything that it refers to.

        If it is damaged, an older one is used and a `CheckpointWarning` describes the damage. A folder that
        holds the lock also removes files of generations that were begun and never committed.

        Raises:
            CheckpointError: if no generation is intact, or the newest needs a newer version of flowcompute.
        """
        with self._mutex:
            self._require_open()
            return self._choose("read")

    def look(self) -> Generation:
        """Return the newest generation in bounded memory: arrays are checked, but come as None."""
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
            self._sync_found_names()
            self._retention.resume_after(self._contents, loaded, trusted=not problems)
        return Generation(loaded.number, loaded.created, loaded.body)

    def _sync_found_names(self) -> None:
        """Make the names that were found durable. Their author may have been killed before that.

        A resumed job acts upon its generation: results get their names and old files are removed. No power cut
        may therefore bring back the state before it.
        """
        if self._published and not self._names_are_durable:
            sync_folder(self._files, self._folder)
            sync_folder(self._files, os.path.dirname(self.path))
            self._names_are_durable = True

    def verify(self) -> list[str]:
        """Return descriptions of all damage to committed files, one line each, found in bounded memory.

        The list is empty where everything is intact.
        """
        with self._mutex:
            self._require_open()
            return self._contents.verify()

    def generations(self) -> list[GenerationStatus]:
        """Return the state of each generation, oldest first, verified in bounded memory."""
        with self._mutex:
            self._require_open()
            try:
                head: Head | None = read_head(self._files, self._contents.folder)
            except DamagedError:
                head = None
            return self._contents.statuses(head)

    def job(self) -> dict[str, Any]:
        """Return the job as given to `set_job`.

        Raises:
            CheckpointError: if no job was set, or its file is damaged.
        """
        with self._mutex:
            self._require_open()
            if self._token is None:
                self.newest()
            if self._job is None:
                raise CheckpointError(
                    f"cannot read a job from {shown(self.path)}: it holds none",
                    hint="choose another path: nothing is frozen here",
                )
            return stored.read_job(self._files, self._folder, self._job)[0]

    def get_blob(self, blob: Blob) -> np.ndarray:
        """Read a stored array into new memory.

        Raises:
            CheckpointError: if its file is missing or damaged.
        """
        with self._mutex:
            self._require_open()
            return stored.read_blob(self._files, self._folder, blob)

    # -- writing --------------------------------------------------------------------------

    def set_job(self, body: Mapping[str, Any]) -> None:
        """Store the part that stays the same in all generations, once, before the first commit.

        Args:
            body: plain data, arrays as blobs.

        Raises:
            CheckpointError: if it cannot be stored.
        """
        with self._mutex:
            self._require_owner()
            if self._published or self._retention.kept or self._job is not None:
                raise ValueError("cannot set the job: it is set once, before the first commit")
            self._job, blobs = stored.write_job(self._files, self._folder, self.token, body)
            self._retention.job(blobs)

    def put_blob(self, array: np.ndarray) -> Blob:
        """Store an immutable array. An array that is stored already is not stored again.

        It is kept until a generation or the job refers to it, and then as long as one does.

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
        """Open an append-only file beside the generations, and create it when it is missing.

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
                raise ValueError(f"cannot open the side file {name!r}: it is open already")
            made = SideFile(self._files, self._folder, name, writable=self._lock is not None)
            self._sides[name] = made
            return made

    def commit(self, body: Mapping[str, Any]) -> int:
        """Store a new generation. When this returns it is durable (the first one when `publish` does).

        Side files that the body has marks of are made durable first.

        Args:
            body: plain data, as for `encode`; its arrays must not change until this returns.

        Returns:
            The number of the generation.

        Raises:
            CheckpointError: if it cannot be stored. The generation before remains the newest then. If only the
                last step of making it durable failed, possibly the new one is.
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
            # A number is never used twice: files of a failed commit must not be taken for those of the next.
            self._retention.next += 1
            stored.write_generation(self._files, self._folder, number, sealed)
            self._sync_names()
            write_head(self._files, self._folder, Head(number, sealed.data[-32:]))
            # It may be committed from here on, even if the next line fails.
            self._retention.committed(number, sealed.blobs)
            self._sync_names()
            try:
                self._retention.remove_unneeded(self._contents)
            except CheckpointError as error:
                warn_at(self.site, f"an old generation stays: {error.message}", CheckpointWarning)
            return number

    def publish(self) -> None:
        """Make the folder appear under its path, after the first commit.

        Raises:
            CheckpointError: if something else appeared there, or the disk refuses.
        """
        with self._mutex:
            self._require_owner()
            if self._published or not self._retention.kept:
                raise ValueError("cannot publish the checkpoint: it is published once, after its first commit")
            sync_folder(self._files, self._folder)
            with naming_path("create", self.path):
                self._files.rename_folder(self._folder, self.path)
            self._contents.folder, self._published = self.path, True
            sync_folder(self._files, os.path.dirname(self.path))
            self._names_are_durable = True

    def close(self) -> None:
        """Release the lock and remove a folder that was never published. Calling it twice does nothing."""
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
            # The next process that creates this checkpoint takes over what is left.
            with contextlib.suppress(OSError, CheckpointError):
                self._contents.remove([*self._contents.names(), LOCK])
                self._files.remove_folder(self._folder)
        with naming_path("close", self.path):
            lock.release()

    def _sync_sides(self, marks: Iterable[SideMark]) -> None:
        for mark in marks:
            open_one = self._sides.get(mark.name)
            if open_one is not None and not open_one.closed:
                open_one.fsync()

    def _sync_names(self) -> None:
        # Before the folder is published nobody sees its names. Publishing makes them durable.
        if self._published:
            sync_folder(self._files, self._folder)

    @property
    def _folder(self) -> str:
        return self._contents.folder

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError("cannot use the checkpoint: it is closed")

    def _require_owner(self) -> None:
        self._require_open()
        if self._lock is None:
            raise ValueError("cannot write a checkpoint that was opened by peek")
        if not self._lock.held:
            raise CheckpointError(
                f"cannot write {shown(self.path)}: it belongs to the process that this one was forked from",
                hint='use it there, or start processes with multiprocessing.get_context("spawn")',
            )


def absolute_path(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a checkpoint.

    Raises:
        CheckpointError: if no folder can have this path.
    """
    try:
        return os.path.abspath(path_text(path))
    except ValueError as error:
        raise CheckpointError(str(error), hint="give the path of a folder") from error


def _require_absent(path: str, files: Files) -> None:
    if CheckpointFolder.exists(path, files):
        raise CheckpointError(
            f"cannot create {shown(path)}: something is there already",
            hint="resume it, remove it, or choose another path",
        )


def _require_checkpoint(path: str, files: Files) -> None:
    with naming_path("open", path):
        try:
            names = files.list_folder(path)
        except NotADirectoryError:
            names = None
    if CLUSTER_JOB in (names or ()):
        raise CheckpointError(
            f"cannot open {shown(path)}: it keeps a job of a cluster, which goes on in the foreground",
            hint="go on with it by fc.run or fc.resolve, by fc.thaw(path).run() or by flowcompute resume",
        )
    if names is None or not any(is_ours(name) for name in names):
        raise CheckpointError(
            f"cannot open {shown(path)}: it is not a checkpoint",
            got="no folder" if names is None else "a folder without generations",
            hint="choose another path: a checkpoint is a folder of its own",
        )
