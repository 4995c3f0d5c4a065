"""What is kept of one shard: its state between two batches, its result, and who may write them.

Each start of a shard claims the next attempt, under a name that no other has. Whoever finds that the newest attempt is
not its own writes nothing more: a process that was paused, and replaced, does no harm when it goes on. Nor does one
whose folder was removed meanwhile, and begun anew by another job.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from typing import Any

from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed.kept.cluster_folder import naming
from flowcompute.elements import State
from flowcompute.errors import CheckpointError, RunError
from flowcompute.files import FILES, Files, atomic_write_bytes

_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})(?:-[0-9a-f]{8})?")
_STATE, _RESULT, _PROGRESS = "state", "result", "progress"
_DIGEST_BYTES = 32


class TakenOverError(RunError):
    """A shard of which another process has begun a newer attempt."""


class ShardFolder:
    """The folder of a shard.

    Args:
        path: of the folder, which is made where it is missing.
        request: digest of what the shard is asked for; what was kept for another request does not count.
        files: the file layer.
    """

    def __init__(self, path: str, request: bytes, files: Files = FILES) -> None:
        self._path, self._request, self._files = path, request, files
        self._attempt = ""
        with naming(path, "create"):
            files.make_folders(path)

    def claim(self) -> None:
        """Begin the next attempt.

        Raises:
            CheckpointError: if the folder cannot be written.
        """
        with naming(self._path, "write to"):
            number, _ = self._newest()
            self._attempt = f"attempt-{number + 1}-{secrets.token_hex(4)}"
            self._files.close(self._files.create(self._at(self._attempt)))
            self._files.fsync_folder(self._path)

    def check(self) -> None:
        """Check that the newest attempt is this one.

        Raises:
            TakenOverError: if it is not.
        """
        with naming(self._path, "look into"):
            _, newest = self._newest()
        if newest != self._attempt:
            raise TakenOverError(
                "cannot go on with a shard: another worker has taken it over",
                expected=self._attempt,
                got=newest or "none",
                hint="let that one end",
            )

    def save(self, state: State, items: int) -> None:
        """Keep a state, and how many records it counts."""
        self.check()
        self._write(_STATE, state)
        self._write(_PROGRESS, {"items": items})

    def finish(self, result: State, items: int) -> None:
        """Keep the result."""
        self.check()
        self._write(_RESULT, result)
        self._write(_PROGRESS, {"items": items})
        with contextlib.suppress(OSError):
            self._files.remove(self._at(_STATE))

    def state(self) -> State | None:
        """Return what an earlier attempt has kept; None where there is nothing that can be used."""
        return self._read(_STATE)

    def result(self) -> State | None:
        """Return the result of an earlier attempt, if it ended."""
        return self._read(_RESULT)

    def items(self) -> int:
        """Return how many records are kept of the shard."""
        found = self._read(_PROGRESS)
        items = 0 if found is None else found.get("items")
        return items if type(items) is int and items >= 0 else 0

    def _newest(self) -> tuple[int, str]:
        """Return the number and the name of the newest attempt. Of two that began together one is the newest."""
        found = map(_ATTEMPT.fullmatch, self._files.list_folder(self._path))
        return max(((int(one[1]), one[0]) for one in found if one is not None), default=(0, ""))

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name)

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        body = pack({"request": self._request, "data": data})
        with naming(self._path, "write to"):
            atomic_write_bytes(self._files, self._at(name), hashlib.sha256(body).digest() + body)

    def _read(self, name: str) -> State | None:
        try:
            found = self._files.read_bytes(self._at(name))
            digest, body = found[:_DIGEST_BYTES], found[_DIGEST_BYTES:]
            fields = unpack(body) if hashlib.sha256(body).digest() == digest else {}
        except (FileNotFoundError, CheckpointError):
            return None
        # What is damaged, or of another job, is computed again.
        return fields["data"] if fields.get("request") == self._request else None
