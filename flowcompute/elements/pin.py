"""The device on which a user wants an operation computed."""

from __future__ import annotations

import re
from dataclasses import field

from flowcompute.errors import Site
from flowcompute.imports import dataclass

_KINDS = re.compile(r"auto|numpy|(?:cpu|gpu)(?::\d+)?", re.IGNORECASE)


def plain_name(name: str) -> str:
    """Return a device's name without blanks around it, and in small letters where it is that of a kind."""
    name = name.strip()
    return name.lower() if _KINDS.fullmatch(name) else name


@dataclass(frozen=True)
class Pin:
    """A device that an operation is computed on, whatever a run's others are.

    Attributes:
        device: as `device=` names one, as `plain_name` gives it.
        site: the user's line.
        of: the operation as it was before anything was pinned.
    """

    device: str
    site: Site | None
    of: object = field(compare=False, repr=False)
