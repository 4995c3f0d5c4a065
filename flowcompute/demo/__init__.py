"""Demo job on real data."""

from flowcompute.demo.moon_distance import run_demo, summary

__all__ = ["run_demo", "summary"]
