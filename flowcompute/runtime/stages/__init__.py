"""The stages of a pass: reading, computing, writing."""

from flowcompute.runtime.stages.batch_boundaries import BatchBoundaries
from flowcompute.runtime.stages.computing import ComputeTask
from flowcompute.runtime.stages.overlapping import OverlappedTask
from flowcompute.runtime.stages.reading import SourceTask
from flowcompute.runtime.stages.turn import Output
from flowcompute.runtime.stages.writing import SinkTask

__all__ = ["BatchBoundaries", "ComputeTask", "Output", "OverlappedTask", "SinkTask", "SourceTask"]
