"""Sources: arrays, files and iterables as streams."""

from flowcompute.sources.array_source import MemorySource, source
from flowcompute.sources.chunked import ChunkedSource
from flowcompute.sources.columnar import ColumnSource, FileTable, open_parts, open_table
from flowcompute.sources.feed_source import FeedSource, feed
from flowcompute.sources.file_source import (
    StoredSource,
    absolute,
    changed,
    located,
    probe,
    source_errors,
    why_not_mapped,
)
from flowcompute.sources.hdf5 import Hdf5ChunkedSource, Hdf5Source, open_hdf5
from flowcompute.sources.iterate_source import AWAIT_IN_LOOP, IterateSource, iterate
from flowcompute.sources.npy_source import NpySource
from flowcompute.sources.open_source import open
from flowcompute.sources.raw_source import RawSource
from flowcompute.sources.safetensors import SafetensorsSource
from flowcompute.sources.several import SeveralSource
from flowcompute.sources.shuffled_source import ShuffledSource
from flowcompute.sources.spool_source import SpoolSource
from flowcompute.sources.view import SourceView
from flowcompute.sources.zarr import ZarrSource, open_zarr

__all__ = [
    "AWAIT_IN_LOOP",
    "ChunkedSource",
    "ColumnSource",
    "FeedSource",
    "FileTable",
    "Hdf5ChunkedSource",
    "Hdf5Source",
    "IterateSource",
    "MemorySource",
    "NpySource",
    "RawSource",
    "SafetensorsSource",
    "SeveralSource",
    "ShuffledSource",
    "SourceView",
    "SpoolSource",
    "StoredSource",
    "ZarrSource",
    "absolute",
    "changed",
    "feed",
    "iterate",
    "located",
    "open",
    "open_hdf5",
    "open_parts",
    "open_table",
    "open_zarr",
    "probe",
    "source",
    "source_errors",
    "why_not_mapped",
]
