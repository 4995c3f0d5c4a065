"""Objects as files that are only read: the file layer of sources behind URLs."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from flowcompute.files import Files, Fingerprint, StoreError, is_url
from flowcompute.imports import LateModule
from flowcompute.objects._obstore import CHUNK_BYTES, ObjectState, ObjectStore, store_of
from flowcompute.objects.urls import READ_ONLY, ObjectUrl, parse_url

if TYPE_CHECKING:
    from flowcompute.objects import redirects
else:
    # It takes what speaks HTTP.
    redirects = LateModule("flowcompute.objects.redirects")

_READERS = 4
_READS_AT_A_TIME = 2
_MOST_BYTES = 8 << 20
"""Bytes of one GET: after a failure no more are asked for again."""

REQUEST_BYTES = 2 * _READERS * _READS_AT_A_TIME * CHUNK_BYTES
"""Bytes that the requests of one source hold besides the buffers that they fill: two chunks each."""


class _OpenObject(NamedTuple):
    url: ObjectUrl
    store: ObjectStore
    state: ObjectState


class ObjectFiles(Files):
    """The reading half of the file layer, for objects in stores and on servers.

    An object that is open is in the state of the first look. Each read says so, and the store refuses it where
    the object is another one.
    """

    local = False
    least_part_bytes = 1 << 21

    def __init__(self) -> None:
        self._open: dict[int, _OpenObject] = {}
        # No descriptor of the system is that large, so that none can be mistaken for another.
        self._handles: Iterator[int] = itertools.count(1 << 40)

    def readers(self, threads: int) -> int:  # noqa: ARG002 - they wait for the network, not for a core
        """Return how many requests share one read, whatever the number of threads."""
        return _READERS

    def open_read(self, path: str) -> int:
        """Look at an object, and return a handle on it in its present state."""
        url = parse_url(path)
        store = store_of(url)
        if url.scheme in READ_ONLY:
            redirects.refuse_foreign_redirects(path, store.silence_s)
        state = store.look(url)
        if not state.is_strong and state.changed is None:
            raise StoreError(
                "the server says neither a strong ETag nor when it changed",
                "copy it to a local file, since nothing would tell whether it changed while it is read",
            )
        if url.scheme in READ_ONLY and state.size:
            # A server without ranges is found out here, not in the middle of a run.
            store.read_into(url, state, memoryview(bytearray(1)), 0)
        handle = next(self._handles)
        self._open[handle] = _OpenObject(url, store, state)
        return handle

    def open_as(self, path: str, then: Fingerprint) -> int:
        """Return a handle on an object in a state that a listing told. Nothing is asked before it is read."""
        url = parse_url(path)
        handle = next(self._handles)
        self._open[handle] = _OpenObject(url, store_of(url), ObjectState(then.size, then.etag, None))
        return handle

    def states_below(self, path: str) -> Iterator[tuple[str, Fingerprint]]:
        """Yield name and state of each object below a URL, in lexical order.

        Raises:
            StoreError: if the store refuses, says no strong ETags, or tells the names in no order.
        """
        url = parse_url(path)
        if url.scheme in READ_ONLY:
            raise StoreError(
                "a web server does not list what it has, so nothing tells whether chunks are missing or have changed",
                "name it as a bucket: s3://, with AWS_ENDPOINT_URL, and AWS_SKIP_SIGNATURE=true where it is public",
            )
        below, last = f"{url.key}/", ""
        for key, state in store_of(url).states(url):
            if not key.startswith(below):
                continue
            if not state.is_strong:
                raise StoreError("the store lists no strong ETags", "copy the array to local files")
            if key <= last:
                raise StoreError("the store lists its objects in no order", "copy the array to local files")
            last = key
            yield key.removeprefix(below), Fingerprint(state.size, _changed_ns(state), 0, 0, state.etag)

    def is_folder(self, path: str) -> bool:
        """Check whether there are objects below a URL, of a store that lists them."""
        url = parse_url(path)
        return url.scheme not in READ_ONLY and any(key.startswith(f"{url.key}/") for key in store_of(url).keys(url))

    def list_folder(self, path: str) -> list[str]:
        """Return the names directly below a URL, in lexical order."""
        url = parse_url(path)
        return store_of(url).names(url)

    def canonical(self, path: str) -> str:
        """Return the URL itself."""
        return path

    def read_into(self, handle: int, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` from `offset` and return the bytes read, fewer only at the end of the object."""
        url, store, state = self._open[handle]
        count = max(0, min(len(buffer), state.size - offset))
        for begin in range(0, count, _MOST_BYTES):
            part = buffer[begin : min(begin + _MOST_BYTES, count)]
            store.read_into(url, state, part, offset + begin)
        return count

    def fingerprint(self, handle: int) -> Fingerprint:
        """Return the state of the first look: each read has made sure that it still holds."""
        return _fingerprint(self._open[handle].state)

    def look(self, path: str) -> Fingerprint:
        """Return the present state of an object."""
        url = parse_url(path)
        return _fingerprint(store_of(url).look(url))

    def status(self, handle: int) -> os.stat_result:
        """Return the status of an open object, as far as objects have one: its size and when it changed."""
        return _status(self._open[handle].state)

    def stat(self, path: str) -> os.stat_result:
        """Return the status of an object, as far as objects have one."""
        url = parse_url(path)
        return _status(store_of(url).look(url))

    lstat = stat

    def close(self, handle: int) -> None:
        """Forget the object."""
        self._open.pop(handle, None)

    def matching(self, pattern: str) -> NoReturn:
        """Refuse patterns: names of objects may hold any characters."""
        raise StoreError(f"there are no patterns of objects: {pattern}", "list the URLs")


OBJECTS = ObjectFiles()


def layer_of(path: str, files: Files) -> Files:
    """Return the file layer of a path: that of objects where it is a URL, else the given one."""
    return OBJECTS if is_url(path) else files


def _fingerprint(state: ObjectState) -> Fingerprint:
    if state.is_strong:
        # Equal bytes that were put again are the same.
        return Fingerprint(state.size, 0, 0, 0, state.etag)
    return Fingerprint(state.size, _changed_ns(state), 0, 0)


def _changed_ns(state: ObjectState) -> int:
    return 0 if state.changed is None else int(state.changed.timestamp()) * 10**9


def _status(state: ObjectState) -> os.stat_result:
    changed = 0 if state.changed is None else int(state.changed.timestamp())
    return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, state.size, changed, changed, changed))
