"""Dropout: random numbers of a stream set to 0."""

from __future__ import annotations

from flowcompute.elements.arguments import real
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.math import greater_equal, where
from flowcompute.elements.random.distributions import uniform
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import is_float


@public
def dropout(x: Operand, rate: float, *, seed: int) -> Compute:
    """Set numbers to 0 with a probability, and divide the others by that of staying.

    Srivastava and others, "Dropout: a simple way to prevent neural networks from overfitting" (2014). Which numbers
    these are follows from `seed` and their positions in the stream, by Philox. They are the same for any batch size,
    on any device, and after a resume.

    Args:
        x: a stream of floats whose length is known.
        rate: the probability of 0, from 0 on and below 1.
        seed: a whole number from 0 to 2^64 - 1.

    Raises:
        SpecError: for another `rate`, or what is no such stream.
    """
    element, rate = as_element(x, "dropout"), real("dropout", "rate", rate)
    if not 0 <= rate < 1:
        raise SpecError(
            "cannot take rate=", element="dropout", site=user_site(), expected="0 <= rate < 1", got=f"{rate}"
        )
    length = element.spec.length
    if not element.spec.is_stream or length is None or not is_float(element.dtype):
        raise SpecError(
            "cannot draw which numbers are set to 0",
            element="dropout",
            site=user_site(),
            expected="a stream of floats of known length",
            got=str(element.spec),
            hint="files and arrays have one; save what is iterated first",
        )
    drawn = uniform(length, shape=element.spec.shape, seed=seed)
    return where(greater_equal(drawn, rate), element / (1.0 - rate), 0.0)
