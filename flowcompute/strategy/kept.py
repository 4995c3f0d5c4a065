"""Small JSON files that are kept between runs in the user's cache folder.

Processes may read and write at any moment: a file appears whole under its name or not at all. Nothing
here ever fails a run: what cannot be read counts as missing, what cannot be written is not kept, and
both are logged.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import tempfile

from flowcompute.cache_folder import distrust

TEMPORARY = "new-"
"""How names of files begin that are being written."""

_LIMIT_BYTES = 1 << 20
_LOG = logging.getLogger(__name__)


def read_kept(path: str) -> object:
    """What a file holds; None where it is missing, is no JSON, or could have been written by others."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), encoding="utf-8") as file:
            problem = distrust(os.fstat(file.fileno()), stat.S_IFREG)
            if problem:
                _LOG.info("%s is not used: it %s", path, problem)
                return None
            return json.loads(file.read(_LIMIT_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _LOG.info("%s is not used: %s", path, error)
        return None


def write_kept(folder: str, name: str, data: object) -> bool:
    """Write a file in place of what was there; gives whether it is kept."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, sort_keys=True)
        os.replace(temporary, os.path.join(folder, name))
        temporary = None
    except OSError as error:
        _LOG.info("%s is not kept: %s", name, error)
        return False
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return True
