"""Carries of several launches, begun by asking the first one where all place records alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from flowcompute.engine.scans import CachePlaces
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch
from flowcompute.gpu.worker import Launcher
from flowcompute.schedule import RegionStep


class StepInHand(Protocol):
    """Launches of which errors name one step."""

    step: RegionStep


class CarriesTogether:
    """Launches whose carries place records together, so that one of them is asked for all.

    Args:
        each: the launches with their phases.
        places: that their carries share; None for a carry that is alone.

    Attributes:
        each: as above.
    """

    def __init__(self, each: Sequence[tuple[RepeatedLaunch, slice]], places: CachePlaces | None) -> None:
        self.each = each
        self._carries = [one.carry for one, _ in each if one.carry is not None]
        self._places, self._phases = places, [rows for _, rows in each]
        self._turn = -1

    @classmethod
    def of(cls, each: Sequence[tuple[RepeatedLaunch, slice]]) -> list[CarriesTogether]:
        """Return launches by the places that their carries have now."""
        found: dict[int, tuple[CachePlaces | None, list[tuple[RepeatedLaunch, slice]]]] = {}
        for one, rows in each:
            carry = one.carry
            assert carry is not None, "launches that carry something on"
            found.setdefault(id(carry.places or carry), (carry.places, []))[1].append((one, rows))
        return [cls(some, places) for places, some in found.values()]

    @property
    def is_known(self) -> bool:
        """True where all carries were begun, and none of them has been changed elsewhere since."""
        places = self._places
        return places is None or (self._carries[0].places is places and self._turn == places.turn)

    def begin(
        self, told: StepInHand, launcher: Launcher, start: int, on_host: Callable[[int, int], np.ndarray]
    ) -> Iterator[tuple[int, Sequence[slice]]]:
        """Begin what is carried on; gives numbers, each with the phases that it is for. See `RepeatedLaunch.begin`."""
        for one, rows in self.each:
            told.step = one.step
            is_known = self._places is not None and self.is_known
            yield one.begin(launcher, start, on_host), self._phases if is_known else [rows]
            if is_known and self.is_known:
                return
        if self._places is not None:
            self._turn = self._places.turn

    def advanced(self, start: int) -> None:
        """Note that the launch over the records from `start` on has ended. What is placed together need not know."""
        for (one, _), carry in zip(self.each, self._carries, strict=True) if self._places is None else ():
            carry.advanced(start + one.items)
