"""What lies in a checkpoint's folder: which generation is to be used, and what each of them is worth."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from flowcompute.checkpoint.store import generations as stored
from flowcompute.checkpoint.store.durable_files import naming, reading
from flowcompute.checkpoint.store.generations import ArraysAre, Loaded
from flowcompute.checkpoint.store.head import HEAD, Head, read_head
from flowcompute.checkpoint.store.side_files import SUFFIX
from flowcompute.checkpoint.store.values import DamagedError
from flowcompute.errors import CheckpointError
from flowcompute.files import Files, shown

_TRIES = 8


class Generation(NamedTuple):
    """A state that was committed.

    Attributes:
        number: grows with each commit; numbers may be missing.
        created: seconds since 1970 by the clock of the machine that wrote it; informative.
        body: as given to `commit`, lists in place of tuples; arrays are read, checked, and in memory of their own.
    """

    number: int
    created: float
    body: dict[str, Any]


class GenerationStatus(NamedTuple):
    """What `CheckpointFolder.generations` says of one.

    Attributes:
        number: of the generation.
        newest: whether HEAD names it.
        ok: whether it and all that it refers to verifies.
        problem: what is wrong, or None.
        size_bytes: of its own files.
        created: as in `Generation`; None where the file does not tell.
    """

    number: int
    newest: bool
    ok: bool
    problem: str | None
    size_bytes: int
    created: float | None


class Contents:
    """The files of a checkpoint, wherever its folder is now.

    Attributes:
        files: the file layer.
        folder: where the checkpoint is.
    """

    def __init__(self, files: Files, folder: str) -> None:
        self.files = files
        self.folder = folder

    def names(self) -> list[str]:
        """The files of the checkpoint, without LOCK and what others put there."""
        with reading(self.folder):
            names = self.files.list_folder(self.folder)
        return [name for name in names if is_ours(name)]

    def numbers(self) -> list[int]:
        """The generations that have an envelope, oldest first."""
        found = (stored.number_of(name, envelope_only=True) for name in self.names())
        return sorted(number for number in found if number is not None)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            path = os.path.join(self.folder, name)
            with naming("remove", path):
                self.files.remove(path)

    def choose(self, *, owned: bool, arrays: ArraysAre = "read") -> tuple[Loaded, list[str]]:
        """The generation to be used, and what is wrong with newer ones.

        Args:
            owned: whether nobody else can change the folder meanwhile.
            arrays: what becomes of its arrays.

        Raises:
            CheckpointError: if there is none, or a newer version is needed.
        """
        for _ in range(_TRIES):
            problems: list[str] = []
            head: Head | None = None
            try:
                head = read_head(self.files, self.folder)
                return self._load(head, arrays), problems
            except DamagedError as error:
                problems.append(error.message)
            # The owner may have gone on and removed what HEAD named before.
            if owned or not self._moved(head):
                break
        for number in reversed(self.numbers()):
            try:
                return self._load(Head(number, b""), arrays), problems
            except DamagedError as error:
                if error.message not in problems:
                    problems.append(error.message)
        raise CheckpointError(
            f"no generation in {shown(self.folder)} can be used",
            got="; ".join(problems),
            hint="restore the folder from a copy, or remove it to begin anew",
        )

    def status(self, number: int, head: Head | None) -> GenerationStatus:
        """What a generation is worth, where HEAD says that."""
        created, problem, size = None, None, 0
        newest = head is not None and head.number == number
        try:
            loaded = self._load(head if head is not None and newest else Head(number, b""), "checked")
            created = loaded.created
        except CheckpointError as error:
            problem = error.message
        for path in (stored.envelope_path(self.folder, number), stored.arrays_path(self.folder, number)):
            with contextlib.suppress(OSError):
                size += self.files.stat(path).st_size
        return GenerationStatus(number, newest, problem is None, problem, size, created)

    def statuses(self, head: Head | None) -> list[GenerationStatus]:
        """What all of them are worth, oldest first; without those that the owner has removed meanwhile."""
        found = [self.status(number, head) for number in self.numbers()]
        left = self.numbers()
        return [one for one in found if one.ok or one.number in left]

    def verify(self) -> list[str]:
        """What is wrong with any file that counts, in bounded memory; the owner may go on meanwhile."""
        problems: list[str] = []
        head: Head | None = None
        try:
            head = read_head(self.files, self.folder)
        except DamagedError as error:
            problems.append(error.message)
        found = self.statuses(head)
        # What is beyond HEAD was begun and never committed: nobody will use it.
        counting = [one for one in found if head is None or one.number <= head.number]
        problems += [f"generation {one.number}: {one.problem}" for one in counting if one.problem is not None]
        if head is not None and not any(one.newest for one in found) and not self._moved(head):
            problems.append(f"generation {head.number}, which {HEAD} names, is missing")
        return problems

    def _load(self, head: Head, arrays: ArraysAre) -> Loaded:
        loaded = stored.read_generation(self.files, self.folder, head.number, arrays)
        if head.sha256 and loaded.sha256 != head.sha256:
            raise DamagedError(f"generation {head.number} is not the one that {HEAD} names")
        self._check_job(loaded.job)
        return loaded

    def _check_job(self, sha256: bytes | None) -> None:
        if sha256 is not None:
            for blob in stored.read_job(self.files, self.folder, sha256)[1]:
                stored.check_blob(self.files, self.folder, blob)

    def _moved(self, head: Head | None) -> bool:
        try:
            return head is not None and read_head(self.files, self.folder) != head
        except DamagedError:
            return False


def is_ours(name: str) -> bool:
    """Whether a file of this name belongs to a checkpoint; LOCK does not count."""
    return (
        name in (HEAD, stored.JOB)
        or name.endswith((SUFFIX, ".partial"))
        or stored.number_of(name) is not None
        or stored.digest_of(name) is not None
    )
