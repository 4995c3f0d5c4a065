"""Imports of what is not always there, or takes long to load; and Python's collector meanwhile."""

from flowcompute.imports.garbage import skip_last_collection, without_collector
from flowcompute.imports.late_dataclass import dataclass
from flowcompute.imports.late_module import LateModule, import_problem, load_module

__all__ = ["LateModule", "dataclass", "import_problem", "load_module", "skip_last_collection", "without_collector"]
