"""Gradients of graphs, as graphs: `fc.grad`, with a rule for each operation."""

from flowcompute.gradients import (  # noqa: F401 - they register their rules
    attention_rules,
    element_wise,
    item_reductions,
    item_views,
    product_rules,
    stream_axis,
    stream_folds,
)
from flowcompute.gradients.backward import grad, times_gradient

__all__ = ["grad", "times_gradient"]
