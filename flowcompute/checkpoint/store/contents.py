"""Contents of a checkpoint's folder: the choice of the generation to use, and the state of each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from flowcompute.checkpoint.store import generations as stored
from flowcompute.checkpoint.store.durable_files import naming_path, reading_path
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
        body: as given to `commit`, with lists in place of tuples. Arrays were checked and are in new memory.
    """

    number: int
    created: float
    body: dict[str, Any]


class GenerationStatus(NamedTuple):
    """Report on one generation, as given by `CheckpointFolder.generations`.

    Attributes:
        number: of the generation.
        newest: whether HEAD names it.
        ok: whether it and everything that it refers to is intact.
        problem: description of the damage, or None.
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
    """Files of a checkpoint, at the present path of its folder.

    Attributes:
        files: the file layer.
        folder: the present path of the checkpoint.
    """

    def __init__(self, files: Files, folder: str) -> None:
        self.files = files
        self.folder = folder

    def names(self) -> list[str]:
        """Return the names of the checkpoint's files, without LOCK and foreign files."""
        with reading_path(self.folder):
            names = self.files.list_folder(self.folder)
        return [name for name in names if is_ours(name)]

    def numbers(self) -> list[int]:
        """Return the numbers of the generations that have an envelope, oldest first."""
        found = (stored.number_of(name, envelope_only=True) for name in self.names())
        return sorted(number for number in found if number is not None)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of the checkpoint."""
        for name in names:
            path = os.path.join(self.folder, name)
            with naming_path("remove", path):
                self.files.remove(path)

    def choose(self, *, owned: bool, arrays: ArraysAre = "read") -> tuple[Loaded, list[str]]:
        """Return the generation to use, and descriptions of what is wrong with newer ones.

        Args:
            owned: whether nobody else can change the folder meanwhile.
            arrays: treatment of its arrays, as for `read_generation`.

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
            # The owner may have committed meanwhile and removed what HEAD named before.
            if owned or not self._moved(head):
                break
        for number in reversed(self.numbers()):
            try:
                return self._load(Head(number, b""), arrays), problems
            except DamagedError as error:
                if error.message not in problems:
                    problems.append(error.message)
        raise CheckpointError(
            f"cannot use any generation in {shown(self.folder)}",
            got="; ".join(problems),
            hint="restore the folder from a copy, or remove it to begin anew",
        )

    def status(self, number: int, head: Head | None) -> GenerationStatus:
        """Return the state of a generation, given what HEAD says."""
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
        """Return the states of all generations, oldest first.

        Generations that the owner has removed meanwhile are left out.
        """
        found = [self.status(number, head) for number in self.numbers()]
        left = self.numbers()
        return [one for one in found if one.ok or one.number in left]

    def verify(self) -> list[str]:
        """Return descriptions of all damage to committed files, found in bounded memory.

        The owner may go on meanwhile.
        """
        problems: list[str] = []
        head: Head | None = None
        try:
            head = read_head(self.files, self.folder)
        except DamagedError as error:
            problems.append(error.message)
        found = self.statuses(head)
        # Generations beyond HEAD were begun and never committed. Nobody will use them.
        counting = [one for one in found if head is None or one.number <= head.number]
        problems += [f"generation {one.number}: {one.problem}" for one in counting if one.problem is not None]
        if head is not None and not any(one.newest for one in found) and not self._moved(head):
            problems.append(f"generation {head.number}, which {HEAD} names, is missing")
        return problems

    def _load(self, head: Head, arrays: ArraysAre) -> Loaded:
        loaded = stored.read_generation(self.files, self.folder, head.number, arrays)
        if head.sha256 and loaded.sha256 != head.sha256:
            raise DamagedError(f"cannot use generation {head.number}: it is not the one that {HEAD} names")
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
    """Check whether a file of this name belongs to a checkpoint. LOCK does not count."""
    return (
        name in (HEAD, stored.JOB)
        or name.endswith((SUFFIX, ".partial"))
        or stored.number_of(name) is not None
        or stored.digest_of(name) is not None
    )
