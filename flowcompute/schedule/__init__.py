"""Planning: turns a graph into steps with their memory and devices. Reads no data and uses no device."""

from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.demand import records_wanted
from flowcompute.schedule.error_policies import files_of, find_dead_letters, letter_paths, policies
from flowcompute.schedule.launch_log import Launch, LaunchLog, RepeatedCount
from flowcompute.schedule.memory import is_uncached
from flowcompute.schedule.plan import Clock, ExecutionPlan, Pass, SinkStage, SourceStage
from flowcompute.schedule.planner import make_plan, plan_step
from flowcompute.schedule.run_knobs import COPYING_THREADS, default_batch_bytes, with_defaults
from flowcompute.schedule.shaping import Shaping
from flowcompute.schedule.steps import NodeStep, RegionStep, Step, device_folds, merged_folds, scan_in
from flowcompute.schedule.stored_strategies import chosen_plan, job_key, keep, note_pace
from flowcompute.schedule.tight_plans import plan_recomputing
from flowcompute.schedule.work_estimate import bytes_of_record

__all__ = [
    "COPYING_THREADS",
    "BackendDescription",
    "Clock",
    "ExecutionPlan",
    "Executor",
    "KernelTuner",
    "Launch",
    "LaunchLog",
    "NodeStep",
    "Pass",
    "RegionStep",
    "RepeatedCount",
    "Shaping",
    "SinkStage",
    "SourceStage",
    "Step",
    "bytes_of_record",
    "chosen_plan",
    "default_batch_bytes",
    "device_folds",
    "files_of",
    "find_dead_letters",
    "is_uncached",
    "job_key",
    "keep",
    "letter_paths",
    "make_plan",
    "merged_folds",
    "note_pace",
    "plan_recomputing",
    "plan_step",
    "policies",
    "records_wanted",
    "scan_in",
    "with_defaults",
]
