"""Rewrites of products: of matrices that repeat, of halves as they are stored, and of all records of a step."""

from flowcompute.rewrite.products.half_windows import ImageWindows, image_windows
from flowcompute.rewrite.products.halves import multiply_halves
from flowcompute.rewrite.products.repeated_matrices import share_repeated_matrices
from flowcompute.rewrite.products.step_products import multiply_all_records

__all__ = [
    "ImageWindows",
    "image_windows",
    "multiply_all_records",
    "multiply_halves",
    "share_repeated_matrices",
]
