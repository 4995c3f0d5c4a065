"""Launches, in this process or in a separate worker process."""

from flowcompute.gpu.worker.isolated_launcher import Isolation, open_launcher
from flowcompute.gpu.worker.launcher import Launcher
from flowcompute.gpu.worker.program_builders import ProgramBuilders

__all__ = ["Isolation", "Launcher", "ProgramBuilders", "open_launcher"]
