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
from flowcompute.onnx.operators.arrays.joining_cutting import concatenated, cut_along
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

__all__ = ["ARRAYS", "concatenated", "cut_along", "lowest_of", "transposed"]
