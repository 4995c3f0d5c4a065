"""Arguments of functions: each is read by type and range, or refused by name."""

from flowcompute.elements.arguments.readers import (
    array_of,
    dtype_of,
    flag,
    is_whole,
    one_of,
    real,
    several,
    whole,
    wholes,
)

__all__ = ["array_of", "dtype_of", "flag", "is_whole", "one_of", "real", "several", "whole", "wholes"]
