"""Where data comes in: arrays, files and iterables as streams."""

from flowcompute.sources.feed import FeedSource, feed
from flowcompute.sources.iterate import IterateSource, iterate
from flowcompute.sources.memory import MemorySource, source
from flowcompute.sources.npy import NpySource
from flowcompute.sources.open import open
from flowcompute.sources.raw import RawSource
from flowcompute.sources.several import SeveralSource
from flowcompute.sources.stored import StoredSource

__all__ = [
    "FeedSource",
    "IterateSource",
    "MemorySource",
    "NpySource",
    "RawSource",
    "SeveralSource",
    "StoredSource",
    "feed",
    "iterate",
    "open",
    "source",
]
