"""Arguments of kernels that do not change from batch to batch: scalars, and operands that are read cyclically."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.elements import Constant
from flowcompute.elements.training import Given
from flowcompute.graph import Node
from flowcompute.ir import register_dtype
from flowcompute.schedule.placement import VECTOR_NUMBERS


class ResidentArguments:
    """Arguments of kernels that are resident values, each made once.

    Args:
        nodes: of the graph.
        resident: whole values by id.
    """

    def __init__(self, nodes: Sequence[Node], resident: Mapping[int, np.ndarray]) -> None:
        self._nodes = nodes
        self._resident = resident
        self._padded: dict[int, np.ndarray] = {}
        self._scalars: dict[int, Any] = {}

    def scalar(self, value: int) -> Any:
        """Return a number that is constant or given, in the dtype that it is computed with."""
        if value not in self._scalars:
            element = self._nodes[value].element
            assert isinstance(element, Constant | Given)
            number = element.value if isinstance(element, Constant) else self._resident[value]
            self._scalars[value] = number.astype(register_dtype(element.dtype))[()]
        return self._scalars[value]

    def cyclic(self, value: int) -> np.ndarray:
        """Return a resident operand with one vector of itself behind it."""
        if value not in self._padded:
            flat = self._resident[value].reshape(-1)
            self._padded[value] = np.concatenate([flat, np.resize(flat, VECTOR_NUMBERS)])
        return self._padded[value]

    def forget(self, values: Collection[int]) -> None:
        """Forget operands, which are made anew."""
        for known in (self._padded, self._scalars):
            for value in known.keys() & values:
                del known[value]

    def clear(self) -> None:
        """Forget all operands."""
        self._padded.clear()
