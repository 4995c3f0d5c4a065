"""Which files of a checkpoint are still needed: the last generations, and what these and the job refer to."""

from __future__ import annotations

from flowcompute.checkpoint.store import generations as stored
from flowcompute.checkpoint.store.contents import Contents
from flowcompute.checkpoint.store.generations import Loaded
from flowcompute.checkpoint.store.values import Blob, DamagedError

KEPT = 3
"""How many generations are kept."""


class Retention:
    """What is needed, kept up to date by the owner of a checkpoint.

    Attributes:
        kept: committed generations that are there, oldest first.
        next: the number of the next one; none is used twice.
        stored: blobs that this owner wrote or verified, by content.
    """

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.next = 0
        self.stored: set[str] = set()
        self._referred: dict[int, set[str]] = {}
        self._by_job: set[str] = set()
        # Put and not referred to yet.
        self._pending: set[str] = set()

    def put(self, blob: Blob) -> None:
        """A blob is there, and about to be referred to."""
        self.stored.add(blob.sha256)
        self._pending.add(blob.sha256)

    def job(self, blobs: list[Blob]) -> None:
        """The job refers to these blobs."""
        self._by_job = _contents(blobs)

    def committed(self, number: int, blobs: list[Blob]) -> None:
        """A generation counts now, and refers to these blobs."""
        self.kept = [*self.kept[1 - KEPT :], number]
        self._referred[number] = _contents(blobs)
        self._pending -= self._referred[number]

    def take_up(self, contents: Contents, loaded: Loaded, *, trusted: bool) -> None:
        """Go on after a generation that an earlier owner committed.

        Args:
            contents: the files that are there.
            loaded: the generation.
            trusted: whether HEAD names it. Then later ones were never committed, though they may be complete, and
                are removed: nobody may fall back to them when the job has gone on without.
        """
        self.kept = [number for number in contents.numbers() if number <= loaded.number]
        numbered = [(number, name) for name in contents.names() if (number := stored.number_of(name)) is not None]
        self.next = max([self.next, *(number + 1 for number, _ in numbered)])
        if trusted:
            contents.remove(name for number, name in numbered if number > loaded.number)
        if loaded.job is not None:
            self._by_job = _contents(stored.read_job(contents.files, contents.folder, loaded.job)[1])

    def tidy(self, contents: Contents) -> None:
        """Remove what is not needed.

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
