"""The one import of obstore, which is needed for objects alone. Without it the first URL says what to install."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from flowcompute.files import MissingObjectError, StoreError
from flowcompute.imports import LateModule, hashlib, import_problem, parse, pathlib
from flowcompute.objects.urls import READ_ONLY, ObjectUrl

if TYPE_CHECKING:
    import obstore
    from obstore import exceptions, store
else:
    obstore, exceptions, store = map(LateModule, ("obstore", "obstore.exceptions", "obstore.store"))

CHUNK_BYTES = 1 << 16
"""Bytes of a response that are handed over at a time."""

CHANGED = "the object changed since it was opened for this job"
CHANGED_ADVICE = "compose the job again, and let nothing write to its input while it runs"

PART_BYTES = 8 << 20
"""Bytes of a part of an upload."""
MOST_PARTS = 4
"""Parts of an upload that are sent at a time."""

_REMOVED_AT_A_TIME = 1000
_MOST_STORES = 16
_ENVIRONMENT = ("AWS_", "GOOGLE_", "AZURE_", "HTTP_", "HTTPS_", "ALL_PROXY", "NO_PROXY")
_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z ]*)?)")
_CALL = re.compile(r"Error performing (?:[A-Z]+) .*?(?= - |$)")


class RequestLimits(NamedTuple):
    """Time and retries of a request.

    Attributes:
        retries: how often a request is tried again after a 5xx, a timeout or a connection that broke.
        retry_s: seconds after which it is tried no more.
        backoff_s: the longest pause between two tries. Pauses grow from 0.1 s, with jitter.
        silence_s: seconds without a byte, or until there is a connection.
        request_s: seconds of a whole request.
    """

    retries: int = 6
    retry_s: float = 60.0
    backoff_s: float = 2.0
    silence_s: float = 15.0
    request_s: float = 120.0


LIMITS = RequestLimits()


class ObjectState(NamedTuple):
    """State of an object: its bytes, its ETag ("" where there is none) and the time of its last change."""

    size: int
    etag: str
    changed: datetime | None

    @property
    def is_strong(self) -> bool:
        """True where equal ETags mean equal bytes."""
        return bool(self.etag) and not self.etag.startswith("W/")


class ObjectStore:
    """One bucket, container or server.

    Args:
        url: of any object in it.

    Attributes:
        silence_s: seconds that it may say nothing.
    """

    def __init__(self, url: ObjectUrl) -> None:
        self._store: Any = _open_store(url)
        self.silence_s = LIMITS.silence_s

    def look(self, url: ObjectUrl) -> ObjectState:
        """Return the state of an object by a HEAD.

        Raises:
            MissingObjectError, StoreError: if there is none, or the store does not tell.
        """
        with store_errors():
            return _state(obstore.head(self._store, _key(url)))

    def read_into(self, url: ObjectUrl, then: ObjectState, buffer: memoryview, begin: int) -> None:
        """Fill `buffer` by one ranged GET, which the store refuses where the object is in another state.

        Raises:
            StoreError: if the object changed, or the store gives other bytes than those asked for.
        """
        options: dict[str, Any] = {"range": (begin, begin + len(buffer))}
        if then.is_strong:
            options["if_match"] = then.etag
        elif then.changed is not None:
            options["if_unmodified_since"] = then.changed
        with store_errors():
            answer = obstore.get(self._store, _key(url), options=options)  # type: ignore[arg-type]
            # Some servers do not know the condition.
            if not same_state(_state(answer.meta), then):
                raise StoreError(CHANGED, CHANGED_ADVICE)
            done = 0
            for chunk in answer.stream(min_chunk_size=CHUNK_BYTES):
                part = memoryview(chunk)
                if done + len(part) > len(buffer):
                    raise _wrong_length(len(buffer), f"at least {done + len(part)}")
                buffer[done : done + len(part)] = part
                done += len(part)
        if done != len(buffer):
            raise _wrong_length(len(buffer), str(done))

    def put(self, url: ObjectUrl, data: bytes, *, new: bool = False) -> bool:
        """Put an object, and return whether it was put: with `new` it is not where there is one of its name.

        Raises:
            StoreError: if the store refuses.
        """
        with store_errors():
            try:
                obstore.put(self._store, _key(url), data, mode="create" if new else "overwrite", use_multipart=False)
            except exceptions.AlreadyExistsError:
                return False
        return True

    def upload(self, url: ObjectUrl, path: str) -> None:
        """Put a local file in parts. There is no object, or the old one, before its last part has come.

        Raises:
            StoreError: if the store refuses.
        """
        with store_errors():
            obstore.put(self._store, _key(url), pathlib.Path(path), chunk_size=PART_BYTES, max_concurrency=MOST_PARTS)

    def keys(self, url: ObjectUrl) -> Iterator[str]:
        """Yield the keys of the objects below a URL; see `states`."""
        for key, _ in self.states(url):
            yield key

    def states(self, url: ObjectUrl) -> Iterator[tuple[str, ObjectState]]:
        """Yield key and state of each object below a URL, by one request for about a thousand.

        Raises:
            StoreError: if the store refuses.
        """
        with store_errors():
            for batch in obstore.list(self._store, _key(url)):
                for one in batch:
                    yield str(one["path"]), _state(one)

    def names(self, url: ObjectUrl) -> list[str]:
        """Return the names directly below a URL: of objects, and of what others lie below.

        Raises:
            StoreError: if the store refuses.
        """
        with store_errors():
            found = obstore.list_with_delimiter(self._store, _key(url))
        below = _key(url) + "/"
        keys = [*found["common_prefixes"], *(str(one["path"]) for one in found["objects"])]
        return sorted(key.removeprefix(below).rstrip("/") for key in keys)

    def remove(self, urls: Sequence[ObjectUrl]) -> None:
        """Remove objects; one that is gone already is no error.

        Raises:
            StoreError: if the store refuses.
        """
        with store_errors():
            for start in range(0, len(urls), _REMOVED_AT_A_TIME):
                keys = [_key(url) for url in urls[start : start + _REMOVED_AT_A_TIME]]
                try:
                    obstore.delete(self._store, keys)
                except FileNotFoundError:
                    # Where each is a request, the first that is gone already ends them all.
                    for key in keys:
                        with contextlib.suppress(FileNotFoundError):
                            obstore.delete(self._store, key)


def store_of(url: ObjectUrl) -> ObjectStore:
    """Return the store of an object. It is opened once, with the credentials in the environment.

    Raises:
        StoreError: if obstore is not installed, or refuses the configuration in the environment.
    """
    problem = import_problem("obstore", "obstore.exceptions", "obstore.store")
    if problem is not None:
        raise StoreError(f"obstore is not installed ({problem})", "run pip install 'flowcompute[objects]'") from problem
    kept = "\0".join(f"{k}={v}" for k, v in sorted(os.environ.items()) if k.upper().startswith(_ENVIRONMENT))
    # What the environment says is not kept, only whether it is the same.
    key = (url.scheme, url.place, hashlib.sha256(kept.encode(errors="surrogateescape")).digest(), LIMITS, os.getpid())
    with _lock:
        opened = _stores.get(key)
        if opened is None:
            with store_errors():
                opened = _stores[key] = ObjectStore(url)
        _stores.move_to_end(key)
        while len(_stores) > _MOST_STORES:
            _stores.popitem(last=False)
    return opened


_lock = threading.Lock()
_stores: OrderedDict[tuple[object, ...], ObjectStore] = OrderedDict()
_memory: dict[str, Any] = {}
"""Buckets of memory://, which live as long as the process."""


def same_state(now: ObjectState, then: ObjectState) -> bool:
    """Check whether an answer is of the object that was looked at first."""
    if now.size != then.size:
        return False
    return now.etag == then.etag if then.is_strong else now.changed == then.changed


@contextlib.contextmanager
def store_errors() -> Iterator[None]:
    """Turn errors of obstore into those of the file layer. Texts of servers are left out: they may echo secrets."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError:
        raise MissingObjectError(
            "there is no such object, or no such bucket", "check the URL, and the endpoint in the environment"
        ) from None
    except exceptions.PreconditionError:
        raise StoreError(CHANGED, CHANGED_ADVICE) from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
        raise StoreError(
            "the store refuses access", "check the credentials in the environment, and who may use the bucket"
        ) from None
    except exceptions.NotSupportedError:
        raise StoreError(
            "the server does not give parts of it", "copy it to a local file, or to a server with range requests"
        ) from None
    except (exceptions.BaseError, OSError, ValueError, TypeError) as error:
        raise StoreError(_words(error), "see whether the store is there and answers, then run it again") from None


def _words(error: Exception) -> str:
    """Return what went wrong, in one line and without what a server has written."""
    first = str(error).split("\n", 1)[0]
    if "non-partial response" in first:
        return "the server does not give parts of it"
    status = _STATUS.search(first)
    if status is not None:
        return f"the store answered with status {status[1].strip()}, also when asked again"
    if "Requested " in first and ", got " in first:
        return "the store gave other bytes than those asked for (Content-Range)"
    if "HTTP error" in first or _CALL.search(first):
        return "the connection failed, timed out or ended early, also when tried again"
    return f"obstore failed ({type(error).__name__})"


def _wrong_length(expected: int, got: str) -> StoreError:
    return StoreError(f"the store gave {got} bytes where {expected} were asked for", CHANGED_ADVICE)


def _state(meta: Any) -> ObjectState:
    changed: datetime = meta["last_modified"]
    etag: str = meta["e_tag"] or ""
    # An ETag has quotes (RFC 9110, 8.8.3). Azure's listings leave them out, and its answers do not.
    if etag and not etag.endswith('"'):
        etag = f'"{etag}"'
    # obstore says 1970 where a server says nothing.
    return ObjectState(int(meta["size"]), etag, changed if changed.timestamp() > 0 else None)


def _key(url: ObjectUrl) -> str:
    # Names on servers are percent-encoded in URLs; obstore encodes them again.
    return parse.unquote(url.key) if url.scheme in READ_ONLY else url.key


def _open_store(url: ObjectUrl) -> Any:
    # As configuration of a store these leave the client as the environment describes it, proxies included.
    client: Any = {
        "connect_timeout": f"{LIMITS.silence_s * 1000:.0f}ms",
        "read_timeout": f"{LIMITS.silence_s * 1000:.0f}ms",
        "timeout": f"{LIMITS.request_s * 1000:.0f}ms",
    }
    retry: Any = {
        "max_retries": LIMITS.retries,
        "retry_timeout": timedelta(seconds=LIMITS.retry_s),
        "backoff": {
            "init_backoff": timedelta(milliseconds=100),
            "max_backoff": timedelta(seconds=LIMITS.backoff_s),
            "base": 2,
        },
    }
    if url.scheme == "memory":
        return _memory.setdefault(url.place, store.MemoryStore())
    if url.scheme in READ_ONLY:
        client["allow_http"] = url.scheme == "http"
        return store.HTTPStore(f"{url.scheme}://{url.place}", client_options=client, retry_config=retry)
    if url.scheme == "s3":
        return store.S3Store(url.place, config=client, retry_config=retry)
    if url.scheme == "gs":
        return store.GCSStore(url.place, config=client, retry_config=retry)
    return store.AzureStore(url.place, config=client, retry_config=retry)
