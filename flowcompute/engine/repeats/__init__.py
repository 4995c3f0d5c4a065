"""Runs of a pass that are done again: as a device has recorded them, or by the launches of the run before."""

from flowcompute.engine.repeats.repeated_runs import RepeatedRuns
from flowcompute.engine.repeats.runs_in_place import RunsInPlace

__all__ = ["RepeatedRuns", "RunsInPlace"]
