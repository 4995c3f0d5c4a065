"""Command `flowcompute`."""

from flowcompute.cli.command import main

__all__ = ["main"]
