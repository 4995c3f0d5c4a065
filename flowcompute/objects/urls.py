"""URLs of objects: what is taken, and what is refused because it may hold a secret."""

from __future__ import annotations

import re
from typing import NamedTuple

from flowcompute.files import without_secrets

SCHEMES = ("s3", "gs", "az", "http", "https", "memory")
READ_ONLY = frozenset(("http", "https"))
"""Schemes of servers that are only read from."""

_LONGEST_URL = 4096
_PARTS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>[^/]*)(?:/(?P<key>.*))?", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_HOST = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?", re.ASCII)


class UrlError(ValueError):
    """A URL that is refused; its words hold no password and no signature."""

    def __init__(self, message: str, expected: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.expected, self.hint = expected, hint


class ObjectUrl(NamedTuple):
    """Place of one object.

    Attributes:
        scheme: in lower case.
        place: the bucket or container; of http and https the host, with its port where it has one.
        key: the name of the object in it, without a slash before it.
    """

    scheme: str
    place: str
    key: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}/{self.key}"


def parse_url(text: str) -> ObjectUrl:
    """Take a URL apart.

    Raises:
        UrlError: if it names no object, or may hold a secret: a user, a password or a query.
    """
    parts = _PARTS.fullmatch(text) if len(text) <= _LONGEST_URL else None
    said = without_secrets(text[:200])
    known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    if parts is None or parts["scheme"].lower() not in SCHEMES:
        raise UrlError(f"{said!r} has no scheme that is known", known, "a local file is named by its path alone")
    scheme, place, key = parts["scheme"].lower(), parts["place"], parts["key"] or ""
    if "@" in place:
        raise UrlError(
            f"{said!r} comes with a user or a password",
            "a URL without credentials",
            "put them into the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    if "?" in text or "#" in text:
        raise UrlError(
            f"{said!r} comes with a query or a fragment, which may hold a signature and would be kept",
            "a URL that ends with the name of the object",
            "give the plain URL, and credentials by the environment",
        )
    if (_HOST if scheme in READ_ONLY else _BUCKET).fullmatch(place) is None:
        raise UrlError(f"{said!r} names no {'host' if scheme in READ_ONLY else 'bucket'}", f"{scheme}://bucket/name")
    segments = key.split("/")
    if not key.isprintable() or any(segment in ("", ".", "..") for segment in segments):
        raise UrlError(f"{said!r} names no object", "a name of parts between single slashes, none of them '.' or '..'")
    return ObjectUrl(scheme, place, key)
