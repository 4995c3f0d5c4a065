"""Numbers of items in order, and where numbers stand: sorting, searching, and lookups by position."""

from flowcompute.elements.search.gathering import gather_nd
from flowcompute.elements.search.lookup import TAKE_ALONG, take_along_axis
from flowcompute.elements.search.membership import SEARCH, isin, searchsorted
from flowcompute.elements.search.nonzero_positions import nonzero
from flowcompute.elements.search.ordering import ARGSORT, SORT, argsort, sort
from flowcompute.elements.search.scattering import SCATTER, scatter_elements, scatter_nd

ORDERING = (SORT, ARGSORT, SEARCH, TAKE_ALONG, SCATTER)
"""Operations that the host computes where no kernel does. What each means is its record's function, on arrays."""

__all__ = [
    "ARGSORT",
    "ORDERING",
    "SCATTER",
    "SEARCH",
    "SORT",
    "TAKE_ALONG",
    "argsort",
    "gather_nd",
    "isin",
    "nonzero",
    "scatter_elements",
    "scatter_nd",
    "searchsorted",
    "sort",
    "take_along_axis",
]
