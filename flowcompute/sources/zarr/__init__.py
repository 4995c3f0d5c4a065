"""Zarr arrays as streams."""

from flowcompute.sources.zarr.metadata import is_zarr
from flowcompute.sources.zarr.zarr_source import ZarrSource, open_zarr

__all__ = ["ZarrSource", "is_zarr", "open_zarr"]
