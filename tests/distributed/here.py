"""A cluster whose workers are this process, and a job for it: what clients and workers do, without dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.store import unpack
from flowcompute.distributed import ClusterRun, answer
from flowcompute.distributed.cluster._dask import ClusterWorker
from flowcompute.distributed.cluster.own_process import OwnProcess
from flowcompute.distributed.kept import ShardFolder

X = np.random.default_rng(21).standard_normal((20_011, 6)).astype("f4")
QUIET: dict[str, Any] = {"progress": False, "memory": "24MiB"}


class KilledError(Exception):
    """The end of a client or a worker."""


class Here(OwnProcess):
    """Workers that are this process; the client is called with the number of each request before it is answered."""

    requests: ClassVar[list[bytes]] = []
    workers: ClassVar[list[ClusterWorker]] = [ClusterWorker("here", None, 1)]

    def __init__(self, client: Callable[[int], None], **_: object) -> None:
        super().__init__()
        self._client = client

    def found(self) -> list[ClusterWorker]:
        return self.workers

    def answers(self, requests: Sequence[bytes], *_: object) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, request in enumerate(requests):
            self._client(len(self.requests))
            self.requests.append(request)
            yield number, unpack(answer(request))


@contextmanager
def killed_within_a_shard(at: int) -> Iterator[None]:
    """Expect that who runs shards dies when attempts have been checked so many times."""
    check_attempt, calls = ShardFolder.check, []

    def counted(self: ShardFolder) -> None:
        check_attempt(self)
        calls.append(self)
        if len(calls) == at:
            raise KilledError

    with mock.patch.object(ShardFolder, "check", counted), pytest.raises(KilledError):
        yield


def job(folder: Path, out: str) -> tuple[fc.Element, ...]:
    x = fc.open(folder / "x.npy", name="x")
    mean, std = x.mean(axis=0), x.std(axis=0)
    return (
        (x - mean) / std >> fc.save(folder / out / "z.npy"),
        fc.cumulative_sum(x, axis=0) >> fc.save(folder / out / "c.raw"),
        x[x[:, 0] > mean[0]] >> fc.save(folder / out / "k.npy"),
        x * 2 >> fc.save(folder / out / "r.zarr", chunk=700),
        fc.table({"a": x[:, 0], "rest": x[:, 1:] * 2}) >> fc.save(folder / out / "t.parquet", chunk=2500),
        x.var(axis=0),
        x[:, 2].argmax(),
    )


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def visible(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if not name.startswith(".")]


def live(_: int) -> None:
    """Answer everything."""


def run(folder: Path, client: Callable[[int], None] = live, **options: Any) -> ClusterRun:
    said = {"checkpoint": folder / "kept", "checkpoint_every": 0, **QUIET, **options}
    made = fc.run(*job(folder, "b"), cluster=client, shards=4, **said)
    assert isinstance(made, ClusterRun)
    return made


@cache
def wanted() -> tuple[dict[str, bytes], list[bytes]]:
    """The files of the job and its values, as one machine makes them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", X)
        (folder / "a").mkdir()
        values = fc.run(*job(folder, "a"), **QUIET).values[5:]
        return bytes_of(folder / "a"), [np.asarray(one).tobytes() for one in values]


def check(folder: Path, made: ClusterRun) -> None:
    files, values = wanted()
    assert bytes_of(folder / "b") == files
    assert [np.asarray(got).tobytes() for got in made.values[5:]] == values
    assert sorted(visible(folder / "b")) == ["c.raw", "k.npy", "r.zarr", "t.parquet", "z.npy"]


def dying(at: int) -> Callable[[int], None]:
    def client(number: int) -> None:
        if number == at:
            raise KilledError

    return client
