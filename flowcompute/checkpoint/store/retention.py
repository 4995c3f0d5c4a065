"""Retention: the files of a checkpoint that are needed still. These are the last generations and what they refer to."""

from __future__ import annotations

from flowcompute.checkpoint.store import generations as stored
from flowcompute.checkpoint.store.contents import Contents
from flowcompute.checkpoint.store.generations import Loaded
from flowcompute.checkpoint.store.values import Blob, DamagedError

KEPT = 3
"""Number of generations that are kept."""


class Retention:
    """Record of the files that are needed, kept up to date by the owner of a checkpoint.

    Attributes:
        kept: numbers of the committed generations that are there, oldest first.
        next: the number of the next one; none is used twice.
        stored: contents of the blobs that this owner wrote or verified.
    """

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.next = 0
        self.stored: set[str] = set()
        self._referred: dict[int, set[str]] = {}
        self._by_job: set[str] = set()
        # Blobs that were stored and that no generation refers to yet.
        self._pending: set[str] = set()

    def put(self, blob: Blob) -> None:
        """Record that a blob is stored and about to be referred to."""
        self.stored.add(blob.sha256)
        self._pending.add(blob.sha256)

    def job(self, blobs: list[Blob]) -> None:
        """Record the blobs that the job refers to."""
        self._by_job = _contents(blobs)

    def committed(self, number: int, blobs: list[Blob]) -> None:
        """Record that a generation is committed, and the blobs that it refers to."""
        self.kept = [*self.kept[1 - KEPT :], number]
        self._referred[number] = _contents(blobs)
        self._pending -= self._referred[number]

    def resume_after(self, contents: Contents, loaded: Loaded, *, trusted: bool) -> None:
        """Continue after a generation that an earlier owner committed.

        Args:
            contents: the files of the checkpoint.
            loaded: the generation.
            trusted: whether HEAD names it. If so, later ones were never committed, though they may be complete,
                and are removed. Otherwise somebody could fall back to one that the resumed job has left behind.
        """
        self.kept = [number for number in contents.numbers() if number <= loaded.number]
        numbered = [(number, name) for name in contents.names() if (number := stored.number_of(name)) is not None]
        self.next = max([self.next, *(number + 1 for number, _ in numbered)])
        if trusted:
            contents.remove(name for number, name in numbered if number > loaded.number)
        if loaded.job is not None:
            self._by_job = _contents(stored.read_job(contents.files, contents.folder, loaded.job)[1])

    def remove_unneeded(self, contents: Contents) -> None:
        """Remove the files that are not needed.

        Raises:
            CheckpointError: if the system refuses.
        """
        needed = self._by_job | self._pending
        for number in self.kept:
            if number not in self._referred:
                self._referred[number] = _referred(contents, number)
            needed |= self._referred[number]
        self.stored &= needed
        contents.remove([name for name in contents.names() if self._superfluous(name, needed)])

    def _superfluous(self, name: str, needed: set[str]) -> bool:
        number, digest = stored.number_of(name), stored.digest_of(name)
        if digest is not None:
            return digest not in needed
        return name.endswith(".partial") or (number is not None and number not in self.kept)


def _contents(blobs: list[Blob]) -> set[str]:
    return {blob.sha256 for blob in blobs}


def _referred(contents: Contents, number: int) -> set[str]:
    try:
        return _contents(stored.read_generation(contents.files, contents.folder, number, "skipped").blobs)
    except DamagedError:
        return set()
