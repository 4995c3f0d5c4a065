"""Somebody who writes a run's events or numbers elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from flowcompute.imports import dataclass
from flowcompute.metrics import Snapshot
from flowcompute.observe.events import Take


@dataclass(frozen=True, slots=True)
class RunView:
    """The numbers of a run or a flow that can be asked for at any time, from any thread.

    Attributes:
        snapshot: gives its numbers.
        seconds: gives the seconds since its start; they stand still when it has ended.
        about: gives what a report needs beside its numbers, as plain data.
        tracks: the stages and queues that it will have at most.
        picture: draws the graph as SVG, coloured by work; empty where it is too large.
        kernels: gives the texts of the kernels by name.
        planned_bytes: bytes of host memory in the plan.
    """

    snapshot: Callable[[], Snapshot]
    seconds: Callable[[], float]
    about: Callable[[], Mapping[str, Any]]
    tracks: int
    picture: Callable[[], str] = str
    kernels: Callable[[], Mapping[str, str]] = dict
    planned_bytes: int = 0


class Consumer(ABC):
    """Works from its making until `close` or `discard`."""

    def takes(self) -> Mapping[type, Take]:
        """Return the function that takes each kind of event that it wants."""
        return {}

    @abstractmethod
    def close(self) -> str | None:
        """End after the run, and return what went wrong, None if nothing did."""

    def discard(self) -> None:
        """End before the run has begun, and leave nothing."""
        self.close()
