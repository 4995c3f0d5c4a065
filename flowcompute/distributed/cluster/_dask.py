"""The one import of dask's `distributed`, needed for clusters alone. Without it a call says what to install.

Dask carries bytes: requests to workers, answers back, and now and then a message of a shard about its work.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from flowcompute.checkpoint.store import unpack
from flowcompute.distributed.shard_answer import answer
from flowcompute.errors import PlanError, RunError

try:
    from distributed import Client, KilledWorker, get_worker
    from distributed.comm.core import CommClosedError
except ImportError as missing:
    _problem: ImportError | None = missing
else:
    _problem = None

_LOOPBACK = ("tcp://127.", "tcp://localhost:", "tcp://[::1]:", "inproc://", "tls://")

_LOOK_EVERY_S = 5.0
"""Seconds between two looks at whether there are workers, while none ends a shard."""

_LOOK_AGAIN_S = 0.5
"""Seconds between two looks where there was no worker: one may come, and be gone before long."""

_FAREWELL_S = 3.0
"""Seconds that workers have to take the word that a run is over."""


class ClusterWorker(NamedTuple):
    """A worker that may run shards.

    Attributes:
        address: of the worker.
        memory_bytes: what it may use; None where nobody has said.
        at_once: shards that it would run at a time.
    """

    address: str
    memory_bytes: int | None
    at_once: int


class DaskWorkers:
    """The workers of a cluster.

    Args:
        client: a `distributed.Client`.
        insecure: allows schedulers that other machines reach without TLS.
        resources: what a shard takes of the resources that a worker was started with.
        wait_s: seconds to wait for the first worker, or for another one where all are gone.

    Raises:
        PlanError: where `distributed` is not installed, this is no client, or its port is open to other machines.
    """

    def __init__(self, client: object, *, insecure: bool, resources: Mapping[str, float], wait_s: float = 30.0) -> None:
        check_client(client, insecure=insecure)
        self._client: Any = client
        self._resources, self._wait_s = dict(resources), wait_s

    def found(self) -> list[ClusterWorker]:
        """Return the workers that have the resources; waits for the first worker of all.

        Raises:
            RunError: if there is none.
            PlanError: if none has the resources.
        """
        try:
            self._client.wait_for_workers(1, timeout=self._wait_s)
        except TimeoutError as error:
            raise self._no_worker() from error
        told = self._told()
        found = [
            ClusterWorker(address, said.get("memory_limit") or None, self._at_once(said))
            for address, said in told.items()
            if self._fits(said)
        ]
        if not found:
            raise PlanError(
                "cannot run shards: no worker has these resources",
                element="resources",
                expected=f"workers with {_shown(self._resources)}",
                got="; ".join(sorted({_shown(said.get("resources") or {}) for said in told.values()})),
                hint='start workers with them, as dask worker --resources "GPU=1"',
            )
        return found

    def ask(
        self, function: Callable[[bytes], bytes], request: bytes, workers: Sequence[ClusterWorker]
    ) -> dict[str, bytes | BaseException]:
        """Call a function of a module in each of these workers, and return by address what it gives, or its error.

        One that has died meanwhile is left out: who comes in its place checks itself before it runs a shard.
        """
        addresses = [one.address for one in workers]
        said = self._client.run(function, request, workers=addresses, on_error="return")
        return {address: one for address, one in said.items() if not isinstance(one, OSError)}

    def answers(
        self, requests: Sequence[bytes], topic: tuple[str, int], again: Callable[[int], None]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Let workers answer requests; yields the fields of each answer with the number of its request, as they come.

        Dask runs a request again on another worker where one dies, at most three times. A worker that is cut off for
        a while counts as dead; back again, it may take its shard over from the one that is listened to.

        Args:
            requests: see `ShardMessages`.
            topic: under which shards tell of their work (see `listen`), and a number that they tell with it.
            again: called with the number of a request whose workers died too often, or whose shard was taken over,
                before it is tried once more; what it raises ends the run.

        Raises:
            RunError: if there is no worker for a while, the scheduler is gone.
        """
        ended: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        futures: dict[int, Any] = {}

        def begin(numbers: Sequence[int]) -> None:
            asked = [(number, requests[number], topic) for number in numbers]
            sent = self._client.map(answer_telling, asked, pure=False, resources=self._resources or None)
            for number, future in zip(numbers, sent, strict=True):
                futures[number] = future
                future.add_done_callback(lambda done, number=number: ended.put((number, done)))

        try:
            begin(range(len(requests)))
            while futures:
                number, future = self._next(ended)
                try:
                    found = unpack(bytes(future.result()))
                except KilledWorker:
                    found = {"taken_over": True}
                except (CancelledError, CommClosedError) as error:
                    # The answer may be on its way when the scheduler goes.
                    raise self._lost(str(error)) from error
                if found.get("taken_over"):
                    again(number)
                    begin([number])
                    continue
                del futures[number], future
                yield number, found
        finally:
            if futures:
                with suppress(Exception):
                    self._client.cancel(list(futures.values()))

    @contextmanager
    def listen(self, topic: str, heard: Callable[[Any], object]) -> Iterator[None]:
        """Hand what shards tell under a topic to a function, in a thread of the client."""
        self._client.subscribe_topic(topic, lambda event: heard(event[1]))
        try:
            yield
        finally:
            with suppress(Exception):
                self._client.unsubscribe_topic(topic)

    def tell_all(self, function: Callable[[bytes], bytes], request: bytes) -> None:
        """Call a function of a module in all workers, and wait a moment for it: some may be paused, or gone."""

        def tell() -> None:
            with suppress(Exception):
                self._client.run(function, request, on_error="ignore")

        thread = threading.Thread(target=tell, name="flowcompute-farewell", daemon=True)
        thread.start()
        thread.join(_FAREWELL_S)

    def _next(self, ended: queue.SimpleQueue[tuple[int, Any]]) -> tuple[int, Any]:
        seen_s, look_s = time.monotonic(), _LOOK_EVERY_S
        while True:
            with suppress(queue.Empty):
                return ended.get(timeout=look_s)
            if self._client.status not in ("running", "connecting"):
                raise self._lost(f"a client that is {self._client.status}")
            if self._client.status == "connecting" or any(map(self._fits, self._told().values())):
                seen_s, look_s = time.monotonic(), _LOOK_EVERY_S
            elif time.monotonic() - seen_s > self._wait_s:
                raise self._no_worker()
            else:
                look_s = _LOOK_AGAIN_S

    def _told(self) -> Mapping[str, Any]:
        try:
            return dict(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError, CancelledError) as error:
            raise self._lost(str(error)) from error

    def _fits(self, said: Mapping[str, Any]) -> bool:
        offered = said.get("resources") or {}
        return all(offered.get(name, 0) >= amount for name, amount in self._resources.items())

    def _at_once(self, said: Mapping[str, Any]) -> int:
        offered = said.get("resources") or {}
        most = [int(offered[name] // amount) for name, amount in self._resources.items()]
        return min([int(said.get("nthreads") or 1), *most])

    def _no_worker(self) -> RunError:
        return RunError(
            "cannot run shards: the cluster has no worker",
            element="cluster",
            expected=f"one within {self._wait_s:g} s",
            got="none",
            hint="start workers, and run it again",
        )

    def _lost(self, text: str) -> RunError:
        return RunError(
            "cannot go on: the scheduler of the cluster is gone",
            element="cluster",
            got=text,
            hint="start the cluster and run the program again: with checkpoint= it goes on where it was",
        )


def answer_telling(asked: tuple[int, bytes, tuple[str, int]]) -> bytes:
    """Answer a request in a worker, and tell its client of the work now and then."""
    number, request, (topic, stage) = asked
    worker = get_worker()
    return answer(request, lambda told: worker.log_event(topic, {**told, "shard": number, "stage": stage}))


def check_client(client: object, *, insecure: bool) -> None:
    """Check that jobs may be sent through a client.

    Dask pickles what it sends: whoever reaches a scheduler's port has a shell on its workers.

    Raises:
        PlanError: where `distributed` is not installed, this is no client, or its port is open to other machines.
    """
    if _problem is not None:
        raise PlanError(
            "cannot use a cluster: distributed is not installed",
            element="cluster",
            got=str(_problem),
            hint="run pip install 'flowcompute[cluster]'",
        ) from _problem
    if not isinstance(client, Client):
        raise PlanError(
            "cannot use this as a cluster",
            element="cluster",
            expected="a distributed.Client",
            got=type(client).__name__,
        )
    address = str(client.scheduler.address) if client.scheduler is not None else ""
    if not insecure and not address.startswith(_LOOPBACK):
        raise PlanError(
            "cannot use a scheduler that other machines reach without TLS: whoever reaches its port has a shell",
            element="cluster",
            expected="an address that begins with tls://, or this machine's own",
            got=address or "a client that is closed",
            hint="start the cluster with certificates; or, in a network that you trust, give insecure=True",
        )


def _shown(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in sorted(resources.items())) or "none"
