"""The options that the verbs take."""

from flowcompute.runtime.options.run_options import RunOptions, check_names, nearest, shows_options

__all__ = [
    "RunOptions",
    "check_names",
    "nearest",
    "shows_options",
]
