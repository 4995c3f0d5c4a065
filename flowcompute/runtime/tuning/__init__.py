"""Knobs tried while a job runs and after its end."""

from flowcompute.runtime.tuning.rehearsal import why_not_rehearsed
from flowcompute.runtime.tuning.tuner import Tuner

__all__ = ["Tuner", "why_not_rehearsed"]
