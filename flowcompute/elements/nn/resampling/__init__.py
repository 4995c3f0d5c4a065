"""Items at other places than those where their numbers stand: resizing, and grids of places."""

from flowcompute.elements.nn.resampling.grid_sampling import grid_sample
from flowcompute.elements.nn.resampling.resizing import resize

__all__ = ["grid_sample", "resize"]
