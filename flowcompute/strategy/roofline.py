"""Roofline model of regions, as plain records: their speed relative to the limits of the device.

S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for multicore
architectures" (2009). Work takes at least as long as its bytes take through memory, and at least as long as its
operations take in the arithmetic units.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from flowcompute.errors import PlanError, short_repr
from flowcompute.files import Each, cache_folder, expect, private_folder
from flowcompute.imports import dataclass, hashlib
from flowcompute.strategy.kept_files import read_kept, write_kept
from flowcompute.version import __version__

Unit = Literal["float32", "float64", "integer", "tensor"]
"""The unit that computes: vector units, by the dtype of their operands, or tensor cores."""

_FOLDER = "devices"


LIMITS_SHAPE: dict[str, Any] = {"bytes_per_s": float, "operations_per_s": Each(float), "when": int}
"""The shape of `Limits.plain`, for those who read it from a file."""


@dataclass(frozen=True)
class Limits:
    """Measured limits of a device.

    Attributes:
        bytes_per_s: bytes read and written per second, by a kernel that copies memory.
        operations_per_s: by unit. A multiplication with an addition counts as two. Units that a device lacks are
            missing.
        when: time of the measurement, in seconds since 1970.
    """

    bytes_per_s: float
    operations_per_s: Mapping[Unit, float]
    when: int

    def plain(self) -> dict[str, Any]:
        """Return the limits as plain data."""
        return {**dataclasses.asdict(self), "operations_per_s": dict(self.operations_per_s)}

    @classmethod
    def from_plain(cls, data: object) -> Limits:
        """Construct the limits from the result of `plain`.

        Raises:
            PlanError: if `data` is something else.
        """
        try:
            if not isinstance(data, Mapping):
                raise TypeError("no mapping")
            rates = {unit: float(data["operations_per_s"][unit]) for unit in data["operations_per_s"]}
            limits = cls(float(data["bytes_per_s"]), rates, int(data["when"]))
            if not set(rates) <= set(get_args(Unit)) or not all(
                one > 0 for one in (limits.bytes_per_s, *rates.values())
            ):
                raise ValueError("no rates")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise PlanError(
                "cannot read these as limits of a device", element="devices", got=short_repr(data)[:80]
            ) from error
        return limits

    def __str__(self) -> str:
        rates = ", ".join(f"{scaled(rate, 'op/s')} ({unit})" for unit, rate in self.operations_per_s.items())
        return f"{scaled(self.bytes_per_s, 'B/s')} through memory; {rates}"


def load_limits(kind: str) -> Limits | None:
    """Load the limits measured on a device of this kind (`DeviceCapabilities.kind`); None if there are none."""

    def read(data: object) -> Limits | None:
        kept = expect(data, {"kind": str, "limits": LIMITS_SHAPE})
        return Limits.from_plain(kept["limits"]) if kept["kind"] == kind else None

    return read_kept(os.path.join(cache_folder(), _FOLDER, _file_name(kind)), read)


def save_limits(kind: str, limits: Limits) -> bool:
    """Store the limits of a kind of device, and return whether they were stored."""
    folder, _ = private_folder(_FOLDER)
    return folder is not None and write_kept(folder, _file_name(kind), {"kind": kind, "limits": limits.plain()})


def _file_name(kind: str) -> str:
    text = f"{kind}\0{__version__}"
    return f"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}.json"


@dataclass(frozen=True)
class Roofline:
    """The work of a region, its time, and the least time that its device needs for it.

    Attributes:
        region: its name.
        bytes: bytes of streams, read from memory and written to it.
        operations: arithmetic operations. A multiplication or addition counts as one, other functions as their cost.
        unit: the unit that computes most of them.
        seconds: time of its kernel on the device, or on the host if the device does not report it.
        bytes_s, operations_s: the least seconds that the bytes, and the operations, take; None if the device's limits
            were not measured.
    """

    region: str
    bytes: float
    operations: float
    unit: Unit
    seconds: float
    bytes_s: float | None = None
    operations_s: float | None = None

    def under(self, limits: Limits | None) -> Roofline:
        """Return the same work under the limits of a device."""
        if limits is None:
            return replace(self, bytes_s=None, operations_s=None)
        rate = limits.operations_per_s.get(self.unit)
        operations_s = None if rate is None else self.operations / rate
        return replace(self, bytes_s=self.bytes / limits.bytes_per_s, operations_s=operations_s)

    @property
    def least_s(self) -> float | None:
        """Least seconds that the work takes."""
        known = [one for one in (self.bytes_s, self.operations_s) if one is not None]
        return max(known, default=None)

    @property
    def bound(self) -> str | None:
        """Limiting resource: "memory" or "arithmetic"."""
        if self.bytes_s is None:
            return None
        return "memory" if self.operations_s is None or self.bytes_s >= self.operations_s else "arithmetic"

    @property
    def share(self) -> float | None:
        """Least seconds divided by the actual ones: 1 is as fast as the device can be."""
        least_s = self.least_s
        return None if least_s is None or not self.seconds else least_s / self.seconds

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.bytes if self.bytes else 0.0

    def __str__(self) -> str:
        seconds = max(self.seconds, 1e-12)
        rates = f"{scaled(self.bytes / seconds, 'B/s')}, {scaled(self.operations / seconds, 'op/s')}"
        text = f"{self.region}: {rates}, {self.intensity:.3g} operations a byte ({self.unit})"
        return text if self.share is None else f"{text}, {self.share:.0%} of what {self.bound} allows"


def scaled(number: float, unit: str) -> str:
    """Format a number with a decimal prefix: `scaled(2.5e9, "B/s")` is "2.5 GB/s"."""
    for prefix in ("", "k", "M", "G", "T"):
        if abs(number) < 1000 or prefix == "T":
            return f"{number:.3g} {prefix}{unit}"
        number /= 1000
    raise AssertionError
