"""Datasets of HDF5 and NetCDF-4 files as streams."""

from flowcompute.sources.hdf5.hdf5_source import Hdf5ChunkedSource, Hdf5Source, open_hdf5

__all__ = ["Hdf5ChunkedSource", "Hdf5Source", "open_hdf5"]
