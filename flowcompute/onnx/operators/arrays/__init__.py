"""Operators that treat values as arrays: number by number, by shape, by axis."""

from flowcompute.onnx.operators.arrays import (
    activation_functions,
    generating,
    joining_cutting,
    logical_shapes,
    pointwise,
    reducing,
    scattering_values,
)
from flowcompute.onnx.operators.arrays.joining_cutting import (
    MOST_PARTS,
    concatenated,
    cut_along,
    parted,
    picked,
    stacked,
)
from flowcompute.onnx.operators.arrays.logical_shapes import transposed
from flowcompute.onnx.operators.arrays.reducing import lowest_of
from flowcompute.onnx.operators.record import Operator

ARRAYS: tuple[Operator, ...] = (
    *pointwise.OPERATORS,
    *activation_functions.OPERATORS,
    *logical_shapes.OPERATORS,
    *joining_cutting.OPERATORS,
    *scattering_values.OPERATORS,
    *reducing.OPERATORS,
    *generating.OPERATORS,
)

ARRAYS_POINTWISE: tuple[Operator, ...] = tuple(
    one for one in (*pointwise.OPERATORS, *activation_functions.OPERATORS) if one.name not in ("SwiGLU", "Dropout")
)
"""Operators whose inputs broadcast, and that compute each number by itself."""

__all__ = [
    "ARRAYS",
    "ARRAYS_POINTWISE",
    "MOST_PARTS",
    "concatenated",
    "cut_along",
    "lowest_of",
    "parted",
    "picked",
    "stacked",
    "transposed",
]
