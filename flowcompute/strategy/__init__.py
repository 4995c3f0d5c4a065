"""Strategy (the tunable knobs) and Config (the user's settings)."""

from flowcompute.strategy.config import Config, Devices, Mode, Precision, Size, parse_bytes
from flowcompute.strategy.file_rates import FileRates, load_file_rates, mount_point, save_file_rates
from flowcompute.strategy.knobs import KERNEL_KNOBS, KernelKnobs
from flowcompute.strategy.pace import DriftWatch, Pace
from flowcompute.strategy.paired_trials import (
    PairedTrials,
    describe_candidate,
    differing,
    trials_of,
)
from flowcompute.strategy.process_limits import core_limit, default_memory_bytes, spare_memory_bytes
from flowcompute.strategy.roofline import LIMITS_SHAPE, Limits, Roofline, Unit, load_limits, save_limits, scaled
from flowcompute.strategy.runtime_trial import TRIAL_SHAPE, RuntimeTrial, load_runtime_trial, save_runtime_trial
from flowcompute.strategy.search import Candidate, Climb, Search, Space
from flowcompute.strategy.strategy import Strategy
from flowcompute.strategy.strategy_store import Key, Stored, StrategyStore, export_strategies, read_exported
from flowcompute.strategy.trial import TUNING_SHAPE, Trial, Tuning, compared
from flowcompute.strategy.verb_options import (
    Every,
    FlowOptions,
    Log,
    PlanOptions,
    PlanVerbOptions,
    RunVerbOptions,
    StartOptions,
    ThawFlowOptions,
    ThawOptions,
    Tune,
    TuneOptions,
)

__all__ = [
    "KERNEL_KNOBS",
    "LIMITS_SHAPE",
    "TRIAL_SHAPE",
    "TUNING_SHAPE",
    "Candidate",
    "Climb",
    "Config",
    "Devices",
    "DriftWatch",
    "Every",
    "FileRates",
    "FlowOptions",
    "KernelKnobs",
    "Key",
    "Limits",
    "Log",
    "Mode",
    "Pace",
    "PairedTrials",
    "PlanOptions",
    "PlanVerbOptions",
    "Precision",
    "Roofline",
    "RunVerbOptions",
    "RuntimeTrial",
    "Search",
    "Size",
    "Space",
    "StartOptions",
    "Stored",
    "Strategy",
    "StrategyStore",
    "ThawFlowOptions",
    "ThawOptions",
    "Trial",
    "Tune",
    "TuneOptions",
    "Tuning",
    "Unit",
    "compared",
    "core_limit",
    "default_memory_bytes",
    "describe_candidate",
    "differing",
    "export_strategies",
    "load_file_rates",
    "load_limits",
    "load_runtime_trial",
    "mount_point",
    "parse_bytes",
    "read_exported",
    "save_file_rates",
    "save_limits",
    "save_runtime_trial",
    "scaled",
    "spare_memory_bytes",
    "trials_of",
]
