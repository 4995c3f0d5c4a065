"""Rewrites of products: of repeated and viewed matrices, of halves as they are stored, of bytes, and of all records."""

from flowcompute.rewrite.products.byte_products import multiply_bytes
from flowcompute.rewrite.products.half_windows import ImageWindows, image_windows
from flowcompute.rewrite.products.halves import multiply_halves
from flowcompute.rewrite.products.repeated_matrices import share_repeated_matrices
from flowcompute.rewrite.products.step_products import multiply_all_records
from flowcompute.rewrite.products.viewed_matrices import view_small_matrices

__all__ = [
    "ImageWindows",
    "image_windows",
    "multiply_all_records",
    "multiply_bytes",
    "multiply_halves",
    "share_repeated_matrices",
    "view_small_matrices",
]
