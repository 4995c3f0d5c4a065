"""Products of values of any rank: outer and cross products, and sums over shared axes."""

from flowcompute.elements.products.contraction import einsum, tensordot
from flowcompute.elements.products.vectors import cross, outer

__all__ = ["cross", "einsum", "outer", "tensordot"]
