"""NumPy's functions on elements: they build the same graph as ours."""

from flowcompute.elements.numpy_calls.array_function import call_numpy

__all__ = ["call_numpy"]
