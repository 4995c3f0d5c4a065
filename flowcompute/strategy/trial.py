"""What a tuner tried, and what came of it: plain records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from flowcompute.errors import PlanError
from flowcompute.strategy.roofline import Roofline

Outcome = Literal["kept", "not better", "within the noise", "not confirmed", "failed"]


@dataclass(frozen=True)
class Trial:
    """A candidate that was measured in turns with the default, on the same data.

    Attributes:
        where: "run", or the name of a kernel.
        knobs: what differs from the default, as `name=value` texts.
        gain: the share of the default's time that it saves (negative: it takes longer), as the median of pairs.
        noise: how far that may be off, likewise; None where there are too few pairs to say.
        pairs: how often both were measured.
        outcome: what came of it.
    """

    where: str
    knobs: str
    gain: float
    noise: float | None
    pairs: int
    outcome: Outcome

    def __str__(self) -> str:
        noise = "?" if self.noise is None else f"{100 * self.noise:.1f}"
        gain = f"{100 * self.gain:+6.1f} % +- {noise} in {self.pairs} pair{'s' if self.pairs > 1 else ''}"
        return f"{self.where:>4}  {self.knobs:<44} {gain:<32} {self.outcome}"


@dataclass(frozen=True)
class Tuning:
    """How the strategy of a run was found.

    Attributes:
        origin: "defaults", "stored", or "tuned" (by this run).
        trials: candidates that this run measured, beside the default.
        seconds: what that took, compiling included.
        gain: the share of the default's time that the kept strategy saves: the most of what single trials gave.
        tried: the candidates, in the order in which they were measured.
        notes: what else there is to say.
        rooflines: how near each region came to what the device can do: in this run, in a plan in the run that found
            what is stored.
    """

    origin: Literal["defaults", "stored", "tuned"] = "defaults"
    trials: int = 0
    seconds: float = 0.0
    gain: float = 0.0
    tried: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    rooflines: tuple[Roofline, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        tried, roofs = ([dataclasses.asdict(one) for one in own] for own in (self.tried, self.rooflines))
        return {**dataclasses.asdict(self), "tried": tried, "rooflines": roofs}

    @classmethod
    def from_plain(cls, data: object) -> Tuning:
        """The record that `plain` gave.

        Raises:
            PlanError: if it is something else.
        """
        try:
            if not isinstance(data, Mapping):
                raise TypeError("no mapping")
            tried = tuple(Trial(**one) for one in data["tried"])
            roofs = tuple(Roofline(**one) for one in data["rooflines"])
            made = cls(**{**data, "tried": tried, "rooflines": roofs, "notes": tuple(data["notes"])})
            str(made)
        except (KeyError, TypeError, ValueError) as error:
            raise PlanError("this is no record of trials", element="strategies", got=repr(data)[:80]) from error
        return made

    def __str__(self) -> str:
        if self.origin != "tuned":
            found = "as stored by an earlier run" if self.origin == "stored" else "defaults, nothing was tried"
            return "\n".join([f"strategy: {found}", *map(str, self.rooflines), *self.notes])
        head = f"{self.trials} candidates in {self.seconds:.2f} s; kept: "
        kept = [one for one in self.tried if one.outcome == "kept"]
        head += "; ".join(f"{one.where} {one.knobs} ({100 * one.gain:+.1f} %)" for one in kept) or "the default"
        return "\n".join([head, *map(str, self.tried), *map(str, self.rooflines), *self.notes])
