"""Rewrites of products: of matrices that repeat, of halves as they are stored, of all records, and of seen ones."""

from flowcompute.rewrite.products.half_windows import ImageWindows, image_windows
from flowcompute.rewrite.products.halves import multiply_halves
from flowcompute.rewrite.products.repeated_matrices import share_repeated_matrices
from flowcompute.rewrite.products.seen_matrices import see_small_matrices
from flowcompute.rewrite.products.step_products import multiply_all_records

__all__ = [
    "ImageWindows",
    "image_windows",
    "multiply_all_records",
    "multiply_halves",
    "see_small_matrices",
    "share_repeated_matrices",
]
