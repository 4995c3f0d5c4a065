"""Folds whose state is kept on the host, one subject a file."""

from flowcompute.engine.accumulators.keys import checked_keys
from flowcompute.engine.accumulators.panel_products import one_blas_thread
from flowcompute.engine.accumulators.products import Multiply, Products
from flowcompute.engine.accumulators.table import make_fold
from flowcompute.engine.accumulators.trained import TrainedValue

__all__ = ["Multiply", "Products", "TrainedValue", "checked_keys", "make_fold", "one_blas_thread"]
