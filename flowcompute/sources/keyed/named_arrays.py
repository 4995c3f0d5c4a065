"""Arrays that files hold by name: which key is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from flowcompute.elements import user_site
from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.files import shown

_SHOWN_KEYS = 20
_MOST_KEY = 1 << 12


def listed(keys: Sequence[str]) -> str:
    """Return the first keys of a file, in words."""
    if not keys:
        return "no arrays"
    return ", ".join(map(repr, map(shown, keys[:_SHOWN_KEYS]))) + (", ..." if len(keys) > _SHOWN_KEYS else "")


def parse_key(key: object, name: str | None) -> str | None:
    """Return `key=` as it was given.

    Raises:
        SpecError: if it is no text.
    """
    if key is None or (isinstance(key, str) and len(key) <= _MOST_KEY and "\0" not in key):
        return key
    raise SpecError(
        "cannot use this as key=",
        element=name,
        site=user_site(),
        expected=f"the name of an array, text of at most {_MOST_KEY} characters",
        got=short_repr(key),
    )


def no_such_key(path: str, key: str | None, keys: Sequence[str], name: str | None) -> NoReturn:
    """Refuse a key.

    Raises:
        SourceError: always, with the keys that there are.
    """
    raise SourceError(
        f"cannot open {shown(path)}: "
        + ("it holds arrays by name" if key is None else f"no array has the key {short_repr(key)}"),
        element=name,
        site=user_site(),
        expected=f"key= of one of its arrays: {listed(keys)}",
    )
