"""Knobs tried while a job runs and after its end, and rates of files."""

from flowcompute.runtime.tuning.file_measurement import measure_files
from flowcompute.runtime.tuning.rehearsal import why_not_rehearsed
from flowcompute.runtime.tuning.tuner import Tuner

__all__ = ["Tuner", "measure_files", "why_not_rehearsed"]
