"""Arguments of functions: each is read by type and range, or refused by name."""

from flowcompute.elements.arguments.familiar import (
    ATTRIBUTES,
    FUNCTIONS,
    ROOMS,
    TABLE_ATTRIBUTES,
    instead_of,
    no_such_name,
)
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
    "ATTRIBUTES",
    "FUNCTIONS",
    "ROOMS",
    "TABLE_ATTRIBUTES",
    "NoValue",
    "array_of",
    "dtype_of",
    "flag",
    "instead_of",
    "is_whole",
    "meant",
    "no_such_name",
    "one_of",
    "real",
    "several",
    "whole",
    "wholes",
]
