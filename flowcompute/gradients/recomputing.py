"""Values that gradients compute again in place of keeping them: `fc.recompute`.

Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation" (1992);
Chen and others, "Training deep nets with sublinear memory cost" (2016).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any

from flowcompute.elements import RECOMPUTE, Compute, Element
from flowcompute.elements.creation import is_recomputed


def computed_again(order: Sequence[Element], kept: Collection[int]) -> dict[int, Compute]:
    """Return what stands for values below marks where gradients ask for them: the same, computed a second time.

    Gradients themselves go through the first ones. So they are added up in the same order with marks and without.

    Args:
        order: all elements that a gradient is taken through, operands first.
        kept: elements that stay, by `id`.

    Returns:
        By the `id` of an element its twin.
    """
    below: set[int] = set()
    for one in reversed(order):
        if (isinstance(one, Compute) and one.op is RECOMPUTE) or id(one) in below:
            below.update(id(operand) for operand in one.inputs if is_recomputed(operand) and id(operand) not in kept)
    made: dict[int, Compute] = {}
    for one in order:
        if id(one) in below:
            twin: Any = copy.copy(one)
            inputs = tuple(made.get(id(operand), operand) for operand in one.inputs)
            twin.freeze_fields(inputs=inputs, again=True, twin_of=None)
            made[id(one)] = twin
    return made
