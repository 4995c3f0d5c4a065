"""All element-wise functions of the tables."""

from __future__ import annotations

from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.math import arithmetic, logic, rounding, transcendental

ELEMENTWISE: dict[str, Function] = {
    value.op.name: value
    for module in (arithmetic, rounding, transcendental, logic)
    for value in vars(module).values()
    if isinstance(value, Function)
}
"""Every function of the tables of arithmetic, logic and transcendental functions, by name."""
