"""NumPy's functions on elements: they build the same graph as ours."""

from flowcompute.elements.numpy_calls.table import call_numpy

__all__ = ["call_numpy"]
