"""Small JSON files that are stored between runs in the user's cache folder; see `cache_folder`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from flowcompute.errors import PlanError
from flowcompute.files import ForeignJsonError, read_json, read_private, write_private
from flowcompute.imports import logging

T = TypeVar("T")

_LIMIT_BYTES = 1 << 20


def read_kept(path: str, read: Callable[[Any], T]) -> T | None:
    """Read a file. The result is None if it is missing, cannot be read, or could have been written by others.

    Args:
        path: of the file.
        read: turns the parsed JSON into what was kept; see `read_json`.
    """
    data = read_private(path, _LIMIT_BYTES)
    try:
        return None if data is None else read_json(data, read, limit_bytes=_LIMIT_BYTES)
    except (ForeignJsonError, PlanError) as error:
        logging.getLogger(__name__).info("%s is not used: %s", path, error)
        return None


def write_kept(folder: str, name: str, data: object) -> bool:
    """Write a file in place of the previous one, and return whether it was stored."""
    return write_private(folder, name, json.dumps(data, indent=1, sort_keys=True).encode())
