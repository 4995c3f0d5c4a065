"""What runs batches on any backend: clocks, input buffers, folds, scans, host functions."""

from flowcompute.engine.backend import Backend, Executor, KernelTuner, PlannedJob, close_all
from flowcompute.engine.device_part import PlacedBackend, PlacedExecutor
from flowcompute.engine.numpy_ops import cast, elementwise
from flowcompute.engine.split_executor import SplitBackend
from flowcompute.engine.step_executor import Pushes
from flowcompute.engine.stopping import CHECK, check_stopped
from flowcompute.engine.stream_scheduler import DRAIN, Made

__all__ = [
    "CHECK",
    "DRAIN",
    "Backend",
    "Executor",
    "KernelTuner",
    "Made",
    "PlacedBackend",
    "PlacedExecutor",
    "PlannedJob",
    "Pushes",
    "SplitBackend",
    "SplitExecutor",
    "cast",
    "check_stopped",
    "close_all",
    "elementwise",
]
