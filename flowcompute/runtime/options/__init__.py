"""The options that the verbs take."""

from flowcompute.runtime.options.run_options import RunOptions, check_names, nearest, shows_options
from flowcompute.runtime.options.verb_options import FlowOptions, PlanOptions, StartOptions, Tune, TuneOptions

__all__ = [
    "FlowOptions",
    "PlanOptions",
    "RunOptions",
    "StartOptions",
    "Tune",
    "TuneOptions",
    "check_names",
    "nearest",
    "shows_options",
]
