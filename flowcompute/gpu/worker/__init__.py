"""Launches, in this process or in a separate worker process."""

from flowcompute.gpu.worker.isolated_launcher import Isolation, open_launcher
from flowcompute.gpu.worker.launcher import Launcher

__all__ = ["Isolation", "Launcher", "open_launcher"]
