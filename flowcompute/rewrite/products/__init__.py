"""Rewrites of products: matrices that repeat are read once, and halves are multiplied as they are stored."""

from flowcompute.rewrite.products.half_windows import ImageWindows, image_windows
from flowcompute.rewrite.products.halves import multiply_halves
from flowcompute.rewrite.products.repeated_matrices import share_repeated_matrices

__all__ = ["ImageWindows", "image_windows", "multiply_halves", "share_repeated_matrices"]
