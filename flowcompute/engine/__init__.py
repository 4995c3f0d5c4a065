"""Engine that runs batches on any backend: clocks, input buffers, folds, scans, host functions."""

from flowcompute.engine.backend import DRAIN, Backend, Executor, KernelTuner, PlannedJob, close_all
from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.batches_ahead import BatchesAhead
from flowcompute.engine.host import cast, elementwise
from flowcompute.engine.in_flight_batch import InFlightBatch
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import RegionRunner, Runners
from flowcompute.engine.scans import NOTHING, TileTotals, is_carried, tile_records, unknown_state
from flowcompute.engine.sharding import (
    ClockPlace,
    begun_at,
    counting_from,
    ended_with,
    fold_block,
    joins_exactly,
    limited,
)
from flowcompute.engine.split_backend import PlacedBackend, SplitBackend
from flowcompute.engine.step_runner import StepRunner
from flowcompute.engine.stopping import CHECK, MOVED, check_stopped, part_done
from flowcompute.engine.stream_scheduler import Made
from flowcompute.engine.training import CarriedValues, DrawnRecords, InnerJob, handed_on_by_steps

__all__ = [
    "CHECK",
    "DRAIN",
    "MOVED",
    "NOTHING",
    "Arrays",
    "Backend",
    "BatchSlice",
    "BatchesAhead",
    "CarriedValues",
    "ClockPlace",
    "DrawnRecords",
    "Executor",
    "InFlightBatch",
    "InnerJob",
    "KernelTuner",
    "Made",
    "PassExecutor",
    "PassState",
    "PlacedBackend",
    "PlannedJob",
    "RegionRunner",
    "Runners",
    "SplitBackend",
    "StepRunner",
    "TileTotals",
    "begun_at",
    "cast",
    "check_stopped",
    "close_all",
    "counting_from",
    "elementwise",
    "ended_with",
    "fold_block",
    "handed_on_by_steps",
    "is_carried",
    "joins_exactly",
    "limited",
    "part_done",
    "tile_records",
    "unknown_state",
]
