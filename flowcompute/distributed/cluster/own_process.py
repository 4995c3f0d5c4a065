"""The client's process in the place of workers: a job of a cluster goes on on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flowcompute.checkpoint.store import unpack
from flowcompute.distributed.cluster._dask import ClusterWorker
from flowcompute.distributed.shard_answer import answer


class OwnProcess:
    """The client's process as the one worker, whose shards follow each other; see `DaskWorkers`."""

    def __init__(self) -> None:
        self._heard: Callable[[Any], object] = lambda _: None

    def found(self) -> list[ClusterWorker]:
        """Return this process."""
        return [ClusterWorker("this process", None, 1)]

    def ask(
        self, function: Callable[[bytes], bytes], request: bytes, workers: Sequence[ClusterWorker]
    ) -> dict[str, bytes | BaseException]:
        """Call a function here."""
        return {one.address: function(request) for one in workers}

    def answers(
        self,
        requests: Sequence[bytes],
        topic: tuple[str, int],
        again: Callable[[int], None],  # noqa: ARG002 - a shard that dies here takes the client along
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Answer requests one after the other."""
        for number, request in enumerate(requests):
            more = {"shard": number, "stage": topic[1]}
            told = answer(request, lambda told, more=more: self._heard({**told, **more}))  # type: ignore[misc]
            yield number, unpack(told)

    @contextmanager
    def listen(self, topic: str, heard: Callable[[Any], object]) -> Iterator[None]:  # noqa: ARG002 - there is one run
        """Hand what shards tell to a function."""
        self._heard = heard
        yield

    def tell_all(self, function: Callable[[bytes], bytes], request: bytes) -> None:
        """Tell nobody: no shard is left here where the client has an error."""
