"""Architectures by name: each is a file of this folder, found by what the model's file says."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol

from flowcompute.errors import SourceError


class Architecture(Protocol):
    """A module of this folder that makes the graph of an architecture."""

    def states(
        self, w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None, **limits: Any
    ) -> Any:
        """Return the vectors that `layers.head` makes scores of; see `layers.TextLimits`."""


def architecture_of(name: str, path: str) -> Architecture:
    """Return an architecture.

    Args:
        name: what the file says, which nobody has checked.
        path: of the file, for errors.

    Raises:
        SourceError: if there is none of this name.
    """
    package = __name__.rpartition(".")[0]
    known = {one.name for one in pkgutil.iter_modules(importlib.import_module(package).__path__)}
    if name in known:
        module: Any = importlib.import_module(f"{package}.{name}")
        if hasattr(module, "states"):
            return module  # type: ignore[no-any-return]
    raise SourceError(
        "cannot make the graph of this architecture",
        element=path,
        expected="one that flowcompute/models/architectures/ has a file for",
        got=repr(name[:80]),
        hint="give the graph yourself: fc.models.load(path, graph=function)",
    )
