"""Loss scales, which keep gradients of half formats from vanishing, and the steps that overflow under them.

A loss that is multiplied by a number has gradients that are so many times as large, and float16 holds them where it
would round them to 0. (Micikevicius and others, "Mixed precision training", 2018.) Gradients are divided by the number
before they are used. A step with a gradient that is not finite changes nothing but the scale, and is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowcompute.elements import Constant, Element, cast, user_site
from flowcompute.elements.math import all as all_of
from flowcompute.elements.math import isfinite, logical_and, maximum, minimum, where
from flowcompute.errors import SpecError, short_repr
from flowcompute.imports import dataclass
from flowcompute.spec import FLOAT32, INT64

DYNAMIC = "dynamic"
FIRST_SCALE = 65536.0
"""What a dynamic scale begins with."""

GROWS_AFTER = 2000
"""Steps in a row without an overflow after which a dynamic scale is doubled; after an overflow it is halved."""

LEAST_SCALE, MOST_SCALE = 1.0, 16777216.0


@dataclass(frozen=True)
class LossScale:
    """A scale of losses: a number, or one that follows the overflows.

    Its state is how many steps were skipped; of a dynamic one also the scale, and the steps since it last changed.

    Attributes:
        number: the scale; None for a dynamic one.
    """

    number: float | None

    @classmethod
    def of(cls, op: str, given: object) -> LossScale | None:
        """Return what an argument asks for; None for no scale.

        Raises:
            SpecError: if it is neither a number above 0 nor "dynamic".
        """
        if given is None:
            return None
        if isinstance(given, str) and given == DYNAMIC:
            return cls(None)
        if isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < math.inf:
            return cls(float(given))
        raise SpecError(
            "cannot take loss_scale=",
            element=op,
            site=user_site(),
            expected=f'"{DYNAMIC}", or a finite number above 0',
            got=short_repr(given),
        )

    def begin(self) -> tuple[Element, ...]:
        """Return the state before the first step."""
        skipped = Constant(0, INT64)
        return (skipped,) if self.number is not None else (skipped, Constant(FIRST_SCALE, FLOAT32), Constant(0, INT64))

    def scale(self, state: Sequence[Element]) -> Any:
        """Return the scale of a step, a float32."""
        return Constant(self.number, FLOAT32) if self.number is not None else state[1]

    def after(self, sound: Any, state: Sequence[Any]) -> tuple[Element, ...]:
        """Return the state after a step.

        Args:
            sound: whether all gradients of the step are finite.
            state: before it.
        """
        skipped = where(sound, state[0], state[0] + 1)
        if self.number is not None:
            return (skipped,)
        scale, since = state[1], state[2] + 1
        grows = logical_and(sound, since >= GROWS_AFTER)
        doubled = where(grows, minimum(scale * 2.0, MOST_SCALE), scale)
        changes = logical_and(sound, since < GROWS_AFTER)
        return skipped, where(sound, doubled, maximum(scale * 0.5, LEAST_SCALE)), where(changes, since, 0)


def all_finite(gradients: Sequence[Any]) -> Any:
    """Return whether all numbers of gradients are finite, as a resident truth value."""
    sound: Any = None
    for one in gradients:
        finite = all_of(isfinite(one))
        sound = finite if sound is None else logical_and(sound, finite)
    return sound


def unscaled(gradients: Sequence[Any], scale: Any) -> list[Any]:
    """Divide gradients by a scale, each in its own dtype."""
    return [one / cast(scale, one.dtype) for one in gradients]
