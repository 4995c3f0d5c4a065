"""Where a user wants an operation computed."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowcompute.errors import Site


@dataclass(frozen=True)
class Pin:
    """A device that an operation is computed on, whatever a run's others are.

    Attributes:
        device: as `device=` names one.
        site: the user's line.
        of: the operation as it was before anything was pinned.
    """

    device: str
    site: Site | None
    of: object = field(compare=False, repr=False)
