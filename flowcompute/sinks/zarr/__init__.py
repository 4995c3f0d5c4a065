"""Results as Zarr arrays."""

from flowcompute.sinks.zarr.zarr_sink import ZarrSink

__all__ = ["ZarrSink"]
