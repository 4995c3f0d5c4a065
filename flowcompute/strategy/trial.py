"""Trials of a tuner and their results, as plain records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, get_args

from flowcompute.errors import PlanError
from flowcompute.files import Maybe, expect
from flowcompute.imports import dataclass
from flowcompute.metrics import counted
from flowcompute.strategy.roofline import Roofline, Unit

Outcome = Literal["kept", "not better", "within the noise", "not confirmed", "failed"]


@dataclass(frozen=True)
class Trial:
    """A candidate that was measured alternately with the default, on the same data.

    Attributes:
        where: "run", or the name of a kernel.
        knobs: differences from the default, as `name=value` texts.
        gain: share of the default's time that it saves (negative if it is slower), as the median of pairs.
        noise: uncertainty of the gain; None if there are too few pairs.
        pairs: number of measurements of both.
        outcome: the decision.
    """

    where: str
    knobs: str
    gain: float
    noise: float | None
    pairs: int
    outcome: Outcome

    def __str__(self) -> str:
        noise = "" if self.noise is None else f", give or take {percent(self.noise)}"
        said = f"{compared(self.gain)}{noise}, {counted(self.pairs, 'measurement')}"
        return f"{self.where:>4}  {self.knobs:<44} {said:<52} {self.outcome}"


def compared(gain: float) -> str:
    """Return a gain in words: "57 % slower", "2.5 % faster", "as fast".

    Args:
        gain: share of the default's time that is saved; negative where more is taken.
    """
    amount = percent(gain)
    return "as fast" if amount == "0 %" else f"{amount} {'faster' if gain > 0 else 'slower'}"


def percent(share: float) -> str:
    """Return the size of a share in percent, with two digits: "57 %", "2.5 %", "0 %"."""
    size = abs(100 * share)
    return f"{size:.0f} %" if size >= 9.95 or size < 0.05 else f"{size:.1f} %"


TUNING_SHAPE: dict[str, Any] = {
    "origin": ("defaults", "stored", "tuned"),
    "trials": int,
    "seconds": float,
    "gain": float,
    "tried": [
        {
            "where": str,
            "knobs": str,
            "gain": float,
            "noise": Maybe(float),
            "pairs": int,
            "outcome": get_args(Outcome),
        }
    ],
    "notes": [str],
    "rooflines": [
        {
            "region": str,
            **dict.fromkeys(("bytes", "operations", "seconds"), float),
            "unit": get_args(Unit),
            **dict.fromkeys(("bytes_s", "operations_s"), Maybe(float)),
        }
    ],
}
"""The shape of `Tuning.plain`, for those who read it from a file."""


@dataclass(frozen=True)
class Tuning:
    """Origin of the strategy of a run.

    Attributes:
        origin: "defaults", "stored", or "tuned" (by this run).
        trials: number of candidates that this run measured, besides the default.
        seconds: time spent, including compilation.
        gain: share of the default's time that the strategy saves: the largest gain of single trials.
        tried: the candidates, in the order of measurement.
        notes: further remarks.
        rooflines: the rooflines of the regions in this run. Those of a plan are from the run that found the stored
            strategy.
    """

    origin: Literal["defaults", "stored", "tuned"] = "defaults"
    trials: int = 0
    seconds: float = 0.0
    gain: float = 0.0
    tried: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    rooflines: tuple[Roofline, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the record as plain data."""
        tried, roofs = ([dataclasses.asdict(one) for one in own] for own in (self.tried, self.rooflines))
        return {**dataclasses.asdict(self), "tried": tried, "rooflines": roofs}

    @classmethod
    def from_plain(cls, data: object) -> Tuning:
        """Construct the record from the result of `plain`.

        Raises:
            PlanError: if `data` is something else.
        """
        try:
            plain: Mapping[str, Any] = expect(data, TUNING_SHAPE)
            tried = tuple(Trial(**one) for one in plain["tried"])
            roofs = tuple(Roofline(**one) for one in plain["rooflines"])
            made = cls(**{**plain, "tried": tried, "rooflines": roofs, "notes": tuple(plain["notes"])})
            str(made)
        except (TypeError, ValueError, OverflowError) as error:
            raise PlanError("cannot read this as a record of trials", element="strategies", got=str(error)) from error
        return made

    def __str__(self) -> str:
        if self.origin != "tuned":
            found = "as stored by an earlier run" if self.origin == "stored" else "defaults, nothing was tried"
            return "\n".join([f"strategy: {found}", *map(str, self.rooflines), *self.notes])
        head = f"{self.trials} candidates in {self.seconds:.2f} s; kept: "
        kept = [one for one in self.tried if one.outcome == "kept"]
        head += "; ".join(f"{one.where} {one.knobs} ({compared(one.gain)})" for one in kept) or "the default"
        return "\n".join([head, *map(str, self.tried), *map(str, self.rooflines), *self.notes])
