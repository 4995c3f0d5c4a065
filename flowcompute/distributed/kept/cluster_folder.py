"""What is kept of a job on a cluster: its description, a folder for each shard, and how it was committed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowcompute.checkpoint.store import CLUSTER_JOB, CheckpointFolder, absolute_path, pack, unpack
from flowcompute.elements import State
from flowcompute.errors import CheckpointError, RunError, short_repr
from flowcompute.files import FILES, Files, atomic_write_bytes, explain, shown

JOB, LOCK, NONCE, COMMIT = CLUSTER_JOB, "LOCK", "NONCE", "COMMIT"
OWNER = "owner"
"""Beside the folders of a stage's shards: the token of the job that they are of."""

ANY_DEVICE = "any"
"""The kind of the device of jobs whose workers may have several kinds."""

_PARTS = ("order of sums", "device", "formulas", "passes", "results")
_DIGEST_BYTES = 32
_MOST_STAGES = 1 << 16


class ClusterFolder:
    """The folder of a job, owned by one client at a time.

    Args:
        path: of the folder, which is made where it is missing.
        identity: what must be the same for a job to go on.
        job: its description, for `thaw`.
        total_items: records that all shards of all stages read.
        shards: the most shards of a stage, for a job that begins.
        files: the file layer.

    Attributes:
        path: as an absolute path.
        token: tells the names of the job's drafts.
        job: its description, as it began.
        shards: the most shards of a stage, as it began: others would find nothing of what is kept.

    Raises:
        CheckpointError: if another client owns it, or it holds another job.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: Sequence[Any],
        job: bytes,
        total_items: int,
        shards: int,
        files: Files = FILES,
    ) -> None:
        self.path, self._files = absolute_path(path), files
        with naming(self.path, "create"):
            files.make_folders(self.path)
            self._lock = files.open_update(os.path.join(self.path, LOCK), create=True)
        try:
            with naming(self.path, "lock"):
                if not files.lock(self._lock):
                    raise CheckpointError(
                        f"cannot use {shown(self.path)}: another client runs this job",
                        hint="wait for it, or give this job another checkpoint=",
                    )
            found = read_job(self.path, files)
            if found is None:
                if set(files.list_folder(self.path)) - {LOCK, NONCE}:
                    began = CheckpointFolder.is_at(self.path)
                    what = "a job that one machine has begun, which goes on on one" if began else "something else"
                    raise CheckpointError(
                        f"cannot use {shown(self.path)}: it holds {what}",
                        expected="a new folder, or one of a job on a cluster",
                        hint="leave cluster= out to go on with it, or give another checkpoint=" if began else None,
                    )
                found = {"version": 1, "token": secrets.token_hex(8), "identity": list(identity), "job": job}
                found["total"], found["shards"] = total_items, shards
                self._write(JOB, found)
            if found["identity"] != list(identity):
                raise _another_job(self.path, found["identity"], list(identity))
            self.token, self.job, self.shards = str(found["token"]), bytes(found["job"]), int(found["shards"])
        except BaseException:
            files.close(self._lock)
            raise

    def shard(self, stage: int, shard: int) -> str:
        """Return the path of a shard's folder."""
        return shard_path(self.path, stage, shard)

    def begin_stage(self, stage: int) -> None:
        """Say beside the folders of a stage's shards whose they are; see `check_owner`."""
        path = os.path.dirname(self.shard(stage, 0))
        with naming(path, "create"):
            self._files.make_folders(path)
        if _owner(path, self._files) != self.token:
            self._write(os.path.join(path, OWNER), {"token": self.token})

    def new_nonce(self) -> tuple[str, bytes]:
        """Write a random number, which every worker must read; return its path and the number."""
        nonce = secrets.token_bytes(16)
        path = os.path.join(self.path, NONCE)
        with naming(path, "write"):
            atomic_write_bytes(self._files, path, nonce)
        return path, nonce

    def committed(self) -> Mapping[str, State] | None:
        """Return the states of results that were complete; None where the job had not come so far."""
        found = _read(os.path.join(self.path, COMMIT), self._files)
        return None if found is None else found["results"]

    def commit(self, results: Mapping[str, State]) -> None:
        """Keep the states of complete results, of which only the names are missing."""
        self._write(COMMIT, {"results": dict(results)})

    def close(self) -> None:
        """Let others have the folder."""
        handle, self._lock = self._lock, -1
        if handle >= 0:
            self._files.close(handle)

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        body = pack(data)
        path = os.path.join(self.path, name)
        with naming(path, "write"):
            atomic_write_bytes(self._files, path, hashlib.sha256(body).digest() + body)


def _another_job(path: str, kept: Sequence[Any], own: Sequence[Any]) -> CheckpointError:
    named = [one for one in zip(_PARTS, kept, own, strict=False) if one[1] != one[2]]
    expected, got = (", ".join(f"{one[0]} {short_repr(one[i])}" for one in named) for i in (1, 2))
    return CheckpointError(
        f"cannot go on with {shown(path)}: it belongs to another job",
        expected=expected,
        got=got,
        hint="give this job another checkpoint=, or remove the folder; where the devices differ, say device=",
    )


def shard_path(path: str, stage: int, shard: int) -> str:
    """Return the path of a shard's folder in that of its job."""
    return os.path.join(path, f"stage-{stage:04}", f"shard-{shard:04}")


def check_owner(path: str, token: str, files: Files = FILES) -> None:
    """Check that a shard's folder is still that of a job: it may have been removed, and another job begun there.

    Args:
        path: of the shard's folder.
        token: of the job.
        files: the file layer.

    Raises:
        RunError: if it is not.
    """
    stage = os.path.dirname(path)
    found = _owner(stage, files)
    if found != token:
        raise RunError(
            f"cannot run a shard: its job is no longer kept in {shown(stage)}",
            expected=f"the job {token}",
            got="none" if found is None else f"the job {found}",
            hint="run the job again",
        )


def _owner(stage: str, files: Files) -> str | None:
    found = _read(os.path.join(stage, OWNER), files)
    return None if found is None else str(found.get("token"))


def read_job(path: str, files: Files = FILES) -> dict[str, Any] | None:
    """Return what is kept of a job on a cluster; None where there is none.

    Raises:
        CheckpointError: if it is damaged.
    """
    found = _read(os.path.join(path, JOB), files)
    known = {"version": int, "token": str, "identity": list, "job": bytes, "total": int, "shards": int}
    if found is None:
        return None
    if found.get("version") != 1 or not all(isinstance(found.get(key), kind) for key, kind in known.items()):
        raise CheckpointError(f"cannot read {shown(path)}: another version of flowcompute made it, or it is damaged")
    return found


def is_mixed(path: str | os.PathLike[str]) -> bool:
    """Check whether a job on a cluster may have devices of several kinds.

    Raises:
        CheckpointError: if it is damaged.
    """
    found = read_job(absolute_path(path))
    return found is not None and ANY_DEVICE in found["identity"][1:2]


def kept_items(path: str, files: Files = FILES) -> int:
    """Return how many records all shards of a job have kept together."""
    total = 0
    for stage in range(_MOST_STAGES):
        folder = os.path.join(path, f"stage-{stage:04}")
        try:
            names = files.list_folder(folder)
        except (FileNotFoundError, NotADirectoryError):
            break
        for name in names:
            with contextlib.suppress(CheckpointError):
                found = _read(os.path.join(folder, name, "progress"), files)
                items = None if found is None else found.get("data", {}).get("items")
                total += items if type(items) is int and items > 0 else 0
    return total


def is_done(path: str, files: Files = FILES) -> bool:
    """Check whether the results of a job are complete."""
    return _read(os.path.join(path, COMMIT), files) is not None


def _read(path: str, files: Files) -> dict[str, Any] | None:
    with naming(path, "read"):
        try:
            found = files.read_bytes(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
    digest, body = found[:_DIGEST_BYTES], found[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise CheckpointError(f"cannot read {shown(path)}: it is damaged", hint="restore it from a copy, or remove it")
    return dict(unpack(body))


@contextlib.contextmanager
def naming(path: str, doing: str) -> Iterator[None]:
    """Name a path in errors of the system.

    Raises:
        CheckpointError: for each of them.
    """
    try:
        yield
    except OSError as error:
        text, hint = explain(error)
        raise CheckpointError(f"cannot {doing} {shown(path)}: {text}", hint=hint) from error
