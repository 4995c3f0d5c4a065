"""Measurements of this machine, made once and kept: limits of devices, rates of files, trials of runtimes."""

from flowcompute.calibration.file_measurement import measure_files
from flowcompute.calibration.runtime_trials import try_runtimes

__all__ = ["measure_files", "try_runtimes"]
