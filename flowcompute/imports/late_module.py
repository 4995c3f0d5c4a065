"""Modules that are imported when they are first used, since some take a tenth of a second to import."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from flowcompute.imports.garbage import count_as_old, without_collector


class LateModule:
    """A module by its name, whose attributes are those of the module. It is imported when the first is asked for.

    Type checkers and import-linter are shown the plain import, below `TYPE_CHECKING`.

    Args:
        name: as in an import.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        # Special names are asked for by copying and printing, which import nothing.
        if name.startswith("__"):
            raise AttributeError(name)
        if self._module is None:
            # It waits for another thread that imports the module now.
            self._module = load_module(self._name)
        return getattr(self._module, name)


@without_collector
def load_module(name: str) -> ModuleType:
    """Import a module by its name and return it. The collector is off: nearly all that modules make stays."""
    is_new = name not in sys.modules
    module = importlib.import_module(name)
    if is_new:
        # The collector would visit all of it twice, at its next turns.
        count_as_old()
    return module


def import_problem(*names: str) -> ImportError | None:
    """Import modules, and return what the first one fails with that cannot be imported; None if there is none."""
    try:
        for name in names:
            importlib.import_module(name)
    except ImportError as problem:
        return problem
    return None
