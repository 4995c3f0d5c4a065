"""Outcome of the trial jobs on an OpenCL runtime, kept once a machine."""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from typing import Any

from flowcompute.errors import PlanError, short_repr
from flowcompute.files import cache_folder, expect, private_folder
from flowcompute.imports import dataclass, hashlib
from flowcompute.strategy.kept_files import read_kept, write_kept
from flowcompute.version import __version__

_FOLDER = "runtimes"

TRIAL_SHAPE: dict[str, Any] = {"problem": str, "seconds": float}
"""The shape of a trial as plain data."""


@dataclass(frozen=True)
class RuntimeTrial:
    """Outcome of the trial jobs on a device.

    Attributes:
        problem: what went wrong first; empty where all answers were right.
        seconds: seconds of the processor that the jobs took together, at best.
    """

    problem: str
    seconds: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.seconds) or self.seconds < 0:
            raise PlanError(
                "cannot take this as the time of trial jobs",
                element="devices",
                expected="seconds, 0 or more",
                got=short_repr(self.seconds),
            )

    def __str__(self) -> str:
        return f"wrong: {self.problem}" if self.problem else f"right, trial jobs in {self.seconds:.3f} s"

    def plain(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return asdict(self)


def load_runtime_trial(identity: str) -> RuntimeTrial | None:
    """Load the outcome on a device of this identity (`Device.identity`); None if it was not tried."""

    def read(data: object) -> RuntimeTrial | None:
        kept = expect(data, {"identity": str, "trial": TRIAL_SHAPE})
        return RuntimeTrial(**kept["trial"]) if kept["identity"] == identity else None

    return read_kept(os.path.join(cache_folder(), _FOLDER, _file_name(identity)), read)


def save_runtime_trial(identity: str, trial: RuntimeTrial) -> bool:
    """Store the outcome on a device, and return whether it was stored."""
    folder, _ = private_folder(_FOLDER)
    kept = {"identity": identity, "trial": trial.plain()}
    return folder is not None and write_kept(folder, _file_name(identity), kept)


def _file_name(identity: str) -> str:
    text = f"{identity}\0{__version__}"
    return f"{hashlib.blake2b(text.encode(errors='surrogateescape'), digest_size=12).hexdigest()}.json"
