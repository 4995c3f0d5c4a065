"""Chunks of a Zarr array in a store: each is asked for in the state in which the array was listed."""

from __future__ import annotations

from array import array as numbers_of

import numpy as np

from flowcompute.files import Fingerprint
from flowcompute.objects import ObjectFiles
from flowcompute.sources.zarr.chunk_files import ChunkFiles, Listing, list_chunks
from flowcompute.sources.zarr.metadata import ZarrArray

STATE_BYTES = 192
"""Bytes of memory for the state of an object: three numbers and an ETag, twice while they are put in order."""


class ChunkStates:
    """Size and ETag of each object of chunks, by the number of the chunk or shard in C order.

    Args:
        array: what it is.
    """

    def __init__(self, array: ZarrArray) -> None:
        self._array = array
        self._numbers, self._sizes, self._ends = numbers_of("q"), numbers_of("q"), numbers_of("q", [0])
        self._etags = bytearray()
        self._order = np.empty(0, np.int64)

    def note(self, path: str, state: Fingerprint) -> None:
        """Take an object; one that holds no chunk is left out."""
        number = self._array.number_of(path)
        if number is not None:
            self._numbers.append(number)
            self._sizes.append(state.size)
            self._etags += state.etag.encode()
            self._ends.append(len(self._etags))

    def sort(self) -> None:
        """Put the objects in order, after the last one was noted."""
        if self._numbers:
            numbers = np.frombuffer(self._numbers, np.int64)
            self._order = np.argsort(numbers, kind="stable")
            self._sorted = numbers[self._order]

    def of(self, number: int) -> Fingerprint | None:
        """Return the state of an object, or None where there is none."""
        place = int(np.searchsorted(self._sorted, number))
        if place == len(self._sorted) or self._sorted[place] != number:
            return None
        at = int(self._order[place])
        etag = self._etags[self._ends[at] : self._ends[at + 1]].decode()
        return Fingerprint(self._sizes[at], 0, 0, 0, etag)


class ChunkObjects(ChunkFiles):
    """Chunks of an array in a store; see `ChunkFiles`. It is listed when it is opened.

    Attributes:
        found: the state of its objects now.
    """

    def __init__(self, files: ObjectFiles, url: str, array: ZarrArray, listing: Listing) -> None:
        super().__init__(files, url, array, listing)
        self._objects, self._url = files, url
        self._states = ChunkStates(array)
        self.found = list_chunks(files, url, self._states.note)
        self._states.sort()

    def _opened(self, key: str) -> int | None:
        number = self._array.number_of(key)
        state = None if number is None else self._states.of(number)
        return None if state is None else self._objects.open_as(f"{self._url}/{key}", state)
