"""Command `flowcompute`."""

from flowcompute.cli.overview import main

__all__ = ["main"]
