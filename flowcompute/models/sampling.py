"""Drawing of the next token from the scores of all."""

from __future__ import annotations

import numpy as np

from flowcompute.elements import user_site
from flowcompute.elements.arguments import real, whole
from flowcompute.errors import SpecError
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class Sampling:
    """Rule by which the next token is drawn. Draw t uses Philox(seed, t), so it depends on nothing before.

    Attributes:
        temperature: divides the scores; 0 takes the highest.
        top_k: how many of the highest scores take part; 0 for all.
        top_p: the smallest set of the likeliest tokens takes part whose probabilities reach it.
        seed: of the random numbers.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SpecError: if one makes no sense.
        """
        for name in ("temperature", "top_p"):
            object.__setattr__(self, name, real("generate", name, getattr(self, name)))
        for name, most in (("top_k", (1 << 31) - 1), ("seed", (1 << 64) - 1)):
            object.__setattr__(self, name, whole("generate", name, getattr(self, name), 0, most, f"0 to {most}"))
        if not 0 <= self.temperature < 1e6:
            raise _refusal("temperature", "a number from 0, below 1e6", self.temperature)
        if not 0 < self.top_p <= 1:
            raise _refusal("top_p", "a number above 0, at most 1", self.top_p)

    def draw(self, scores: np.ndarray, number: int) -> int:
        """Return a token.

        Args:
            scores: of all tokens.
            number: of the draw, from 0.
        """
        if not self.temperature:
            return int(np.argmax(scores))
        order = likeliest(scores, self.top_k or len(scores))
        wide = scores[order].astype(np.float64) / self.temperature
        weights = np.exp(wide - wide[0])
        sums = np.cumsum(weights / weights.sum())
        # The token that reaches top_p takes part.
        count = int(np.searchsorted(sums, self.top_p)) + 1
        sums = sums[:count] / sums[min(count, len(sums)) - 1]
        drawn = np.random.Generator(np.random.Philox(key=self.seed, counter=number)).random()
        return int(order[min(int(np.searchsorted(sums, drawn, side="right")), len(sums) - 1)])


def likeliest(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the tokens of the highest scores, the highest first. Of equals the first one stands first, NaN last.

    Args:
        scores: of all tokens.
        count: how many tokens.
    """
    if scores.dtype != np.float32 or len(scores) >= 1 << 31:
        return np.argsort(-scores, kind="stable")[:count]
    # One integer holds a score, turned around, and its token. Sorting these takes half as long as a stable argsort.
    bits = (scores + np.float32(0)).view(np.int32)
    rising = np.where(np.isnan(scores), np.int32(-(1 << 31)), bits ^ (bits >> 31 & 0x7FFFFFFF))
    keys = (~rising).astype(np.int64) << 32 | np.arange(len(scores))
    first = np.partition(keys, count - 1)[:count] if 0 < count < len(keys) else keys
    return np.sort(first)[:count] & 0xFFFFFFFF


def _refusal(name: str, expected: str, got: float) -> SpecError:
    return SpecError(f"cannot take {name}=", element="generate", site=user_site(), expected=expected, got=repr(got))
