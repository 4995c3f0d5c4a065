"""Imports of what is not always there, or takes long to load; and Python's collector meanwhile."""

from flowcompute.imports.garbage import skip_last_collection, without_collector
from flowcompute.imports.late_dataclass import dataclass
from flowcompute.imports.late_module import LateModule, import_problem, load_module
from flowcompute.imports.standard_library import (
    difflib,
    hashlib,
    html,
    logging,
    parse,
    pathlib,
    secrets,
    subprocess,
    tempfile,
)

__all__ = [
    "LateModule",
    "dataclass",
    "difflib",
    "hashlib",
    "html",
    "import_problem",
    "load_module",
    "logging",
    "parse",
    "pathlib",
    "secrets",
    "skip_last_collection",
    "subprocess",
    "tempfile",
    "without_collector",
]
