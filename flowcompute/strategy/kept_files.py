"""Small JSON files that are stored between runs in the user's cache folder; see `cache_folder`."""

from __future__ import annotations

import json
import logging

from flowcompute.files import read_private, write_private

_LIMIT_BYTES = 1 << 20
_LOG = logging.getLogger(__name__)


def read_kept(path: str) -> object:
    """Read a file. The result is None if it is missing, is not JSON, or could have been written by others."""
    data = read_private(path, _LIMIT_BYTES)
    try:
        return None if data is None else json.loads(data)
    except ValueError as error:
        _LOG.info("%s is not used: %s", path, error)
        return None


def write_kept(folder: str, name: str, data: object) -> bool:
    """Write a file in place of the previous one, and return whether it was stored."""
    return write_private(folder, name, json.dumps(data, indent=1, sort_keys=True).encode())
