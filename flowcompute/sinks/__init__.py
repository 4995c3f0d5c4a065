"""Sinks: results in arrays and files, or handed to functions."""

from flowcompute.sinks.array_sink import MemorySink, to_array
from flowcompute.sinks.callback_sink import CallbackSink, callback
from flowcompute.sinks.discard_sink import DiscardSink, discard
from flowcompute.sinks.file_sink import StoredSink
from flowcompute.sinks.folder_sink import FolderSink
from flowcompute.sinks.hdf5 import Hdf5Sink
from flowcompute.sinks.npy_sink import NpySink
from flowcompute.sinks.numbers import NumbersSink
from flowcompute.sinks.objects import UploadSink, ZarrObjectsSink, draft_target
from flowcompute.sinks.parquet import ParquetSink
from flowcompute.sinks.raw_sink import RawSink
from flowcompute.sinks.safetensors_sink import SafetensorsSink
from flowcompute.sinks.save_sink import save
from flowcompute.sinks.saved_arrays import SavedArray
from flowcompute.sinks.spool_sink import SpoolSink
from flowcompute.sinks.zarr import ZarrSink

__all__ = [
    "CallbackSink",
    "DiscardSink",
    "FolderSink",
    "Hdf5Sink",
    "MemorySink",
    "NpySink",
    "NumbersSink",
    "ParquetSink",
    "RawSink",
    "SafetensorsSink",
    "SavedArray",
    "SpoolSink",
    "StoredSink",
    "UploadSink",
    "ZarrObjectsSink",
    "ZarrSink",
    "callback",
    "discard",
    "draft_target",
    "save",
    "to_array",
]
