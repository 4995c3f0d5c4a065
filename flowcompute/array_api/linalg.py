"""The extension `linalg` of the standard."""

from flowcompute.array_api.linear_algebra import matmul, matrix_transpose, vecdot

__all__ = ["matmul", "matrix_transpose", "vecdot"]
