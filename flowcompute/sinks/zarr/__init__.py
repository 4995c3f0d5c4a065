"""Results as Zarr arrays."""

from flowcompute.sinks.zarr.zarr_sink import METADATA, OLD_METADATA, ZarrSink

__all__ = ["METADATA", "OLD_METADATA", "ZarrSink"]
