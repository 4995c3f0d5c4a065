"""Streams that lie in chunks: grids of blocks that are decoded one by one, such as those of Zarr and HDF5."""

from flowcompute.sources.chunked.chunk_grid import ChunkGrid
from flowcompute.sources.chunked.chunked_source import ChunkedSource, ChunkError, ChunkStore

__all__ = ["ChunkError", "ChunkGrid", "ChunkStore", "ChunkedSource"]
