"""Arguments of functions: each is read by type and range, or refused by name."""

from flowcompute.elements.arguments.familiar import INSTEAD
from flowcompute.elements.arguments.no_value import NoValue
from flowcompute.elements.arguments.readers import (
    array_of,
    dtype_of,
    flag,
    is_whole,
    meant,
    one_of,
    real,
    several,
    whole,
    wholes,
)

__all__ = [
    "INSTEAD",
    "NoValue",
    "array_of",
    "dtype_of",
    "flag",
    "is_whole",
    "meant",
    "one_of",
    "real",
    "several",
    "whole",
    "wholes",
]
