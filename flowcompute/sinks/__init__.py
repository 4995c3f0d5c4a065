"""Where data goes out: arrays, files and functions."""

from flowcompute.sinks.callback import CallbackSink, callback
from flowcompute.sinks.discard import DiscardSink, discard
from flowcompute.sinks.memory import MemorySink, to_array
from flowcompute.sinks.npy import NpySink
from flowcompute.sinks.raw import RawSink
from flowcompute.sinks.save import save
from flowcompute.sinks.stored import StoredSink

__all__ = [
    "CallbackSink",
    "DiscardSink",
    "MemorySink",
    "NpySink",
    "RawSink",
    "StoredSink",
    "callback",
    "discard",
    "save",
    "to_array",
]
