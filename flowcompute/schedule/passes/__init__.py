"""Passes of a plan, and their steps with kernels. It is loaded for the first graph that is planned."""

from flowcompute.schedule.passes.pass_builder import build_passes
from flowcompute.schedule.passes.step_maker import KERNELS, StepMaker

__all__ = ["KERNELS", "StepMaker", "build_passes"]
