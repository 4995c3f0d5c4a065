"""Imports of what is not always there, or takes long to load."""

from flowcompute.imports.late_module import LateModule, import_problem

__all__ = ["LateModule", "import_problem"]
