"""Calls of public functions, which elements remember."""

from flowcompute.elements.calls.public_functions import of_operands, public

__all__ = ["of_operands", "public"]
