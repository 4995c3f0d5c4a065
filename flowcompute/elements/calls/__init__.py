"""Calls of public functions: elements remember them, and equal ones make copies of what the first ones made."""

from flowcompute.elements.calls.public_functions import of_operands, public

__all__ = ["of_operands", "public"]
