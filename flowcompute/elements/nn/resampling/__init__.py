"""Items at other places than those where their numbers stand: resizing."""

from flowcompute.elements.nn.resampling.resizing import resize

__all__ = ["resize"]
