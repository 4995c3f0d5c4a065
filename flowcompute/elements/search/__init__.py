"""Numbers of items in order, and where numbers stand: sorting, searching, and lookups by position."""

from flowcompute.elements.search.lookup import TAKE_ALONG, take_along_axis
from flowcompute.elements.search.membership import SEARCH, isin, searchsorted
from flowcompute.elements.search.ordering import ARGSORT, SORT, argsort, sort
from flowcompute.elements.search.positions import nonzero

ON_HOST = (SORT, ARGSORT, SEARCH, TAKE_ALONG)
"""Operations that the host computes, batch by batch. What each means is its record's function, on axes of arrays."""

__all__ = [
    "ARGSORT",
    "ON_HOST",
    "SEARCH",
    "SORT",
    "TAKE_ALONG",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take_along_axis",
]
