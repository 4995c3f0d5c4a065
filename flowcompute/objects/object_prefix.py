"""Objects under one URL, as a folder of files is: put, looked at and removed by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from flowcompute.files import MissingObjectError, StoreError
from flowcompute.objects._obstore import MOST_PARTS, PART_BYTES, store_of
from flowcompute.objects.urls import READ_ONLY, ObjectUrl, UrlError, parse_url


class ObjectPrefix:
    """A place in a store.

    Args:
        text: its URL.

    Raises:
        UrlError: if it is none, or of a server that is only read from.
        StoreError: if obstore is not installed.
    """

    UPLOAD_BYTES = PART_BYTES * MOST_PARTS
    """Bytes that an upload holds."""

    def __init__(self, text: str) -> None:
        self._url = parse_url(text)
        if self._url.scheme in READ_ONLY:
            raise UrlError(
                f"{text!r} is on a server that is only read from", "s3://, gs://, az:// or memory://", "save to a store"
            )
        self._store = store_of(self._url)

    def exists(self, name: str) -> bool:
        """Check whether there is an object of this name."""
        try:
            self._store.look(self._of(name))
        except MissingObjectError:
            return False
        return True

    def names(self) -> Iterator[str]:
        """Yield the names of all objects."""
        before = self._url.key + "/"
        for key in self._store.keys(self._url):
            if key.startswith(before):
                yield key[len(before) :]

    def first_names(self, count: int) -> list[str]:
        """Return the names of a few objects."""
        return list(islice(self.names(), count))

    def size(self) -> int | None:
        """Return the bytes of the object that has this very URL; None where there is none."""
        try:
            return self._store.look(self._url).size
        except MissingObjectError:
            return None

    def upload(self, path: str) -> None:
        """Put a local file as the object of this very URL, in parts; an older one is replaced."""
        self._store.upload(self._url, path)

    def put(self, name: str, data: bytes) -> None:
        """Put an object; one of this name is replaced."""
        self._store.put(self._of(name), data)

    def put_new(self, name: str, data: bytes) -> bool:
        """Put an object unless there is one of this name, and return whether it was put."""
        return self._store.put(self._of(name), data, new=True)

    def read(self, name: str, most: int) -> bytes:
        """Return the bytes of a small object, at most so many."""
        url = self._of(name)
        state = self._store.look(url)
        if state.size > most:
            raise StoreError(
                f"{name} has {state.size} bytes where at most {most} were put", "see who else writes there"
            )
        data = bytearray(state.size)
        if data:
            self._store.read_into(url, state, memoryview(data), 0)
        return bytes(data)

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; one that is gone already is no error."""
        self._store.remove([self._of(name) for name in names])

    def lies_in(self, places: Sequence[str]) -> bool:
        """Check whether this is one of these URLs or below one."""
        own = f"{self._url}/"
        return any(own.startswith(place.rstrip("/") + "/") for place in places)

    def _of(self, name: str) -> ObjectUrl:
        return self._url._replace(key=f"{self._url.key}/{name}")
