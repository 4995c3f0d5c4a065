"""The NumPy backend: complete, and the oracle of the tests."""

from flowcompute.reference.numpy_backend import NumpyBackend

__all__ = ["NumpyBackend"]
