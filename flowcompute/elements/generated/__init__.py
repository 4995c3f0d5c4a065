"""Streams that are made where they are needed: ranges and random numbers; and orders of records."""

from flowcompute.elements.generated.drawing import KEPT_BITS, NORMAL, SCALED, SCALED_WIDE, UNIFORM
from flowcompute.elements.generated.generator import INDEX, Generator, arange, generated_spec, index, range
from flowcompute.elements.generated.permutation import Permutation
from flowcompute.elements.generated.philox import BOX_MULLER, KEY_STEPS, MULTIPLIERS, ROUNDS

__all__ = [
    "BOX_MULLER",
    "INDEX",
    "KEPT_BITS",
    "KEY_STEPS",
    "MULTIPLIERS",
    "NORMAL",
    "ROUNDS",
    "SCALED",
    "SCALED_WIDE",
    "UNIFORM",
    "Generator",
    "Permutation",
    "arange",
    "generated_spec",
    "index",
    "range",
]
