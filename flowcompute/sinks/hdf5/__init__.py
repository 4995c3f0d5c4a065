"""Results as HDF5 files."""

from flowcompute.sinks.hdf5.hdf5_sink import Hdf5Sink

__all__ = ["Hdf5Sink"]
