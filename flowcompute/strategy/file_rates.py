"""Measured rates of file systems, as plain records that are kept once a machine."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from flowcompute.errors import PlanError, short_repr
from flowcompute.files import cache_folder, expect, private_folder
from flowcompute.imports import dataclass, hashlib
from flowcompute.strategy.kept_files import read_kept, write_kept
from flowcompute.strategy.roofline import scaled

_FOLDER = "disks"

_SHAPE: dict[str, Any] = {"read_bytes_per_s": float, "cached_bytes_per_s": float, "write_bytes_per_s": float}


@dataclass(frozen=True)
class FileRates:
    """Measured rates of the files below a mount point.

    Attributes:
        read_bytes_per_s: bytes read per second that the system's cache does not hold.
        cached_bytes_per_s: bytes read per second that it holds.
        write_bytes_per_s: bytes written per second, with the wait until the disk has them.
    """

    read_bytes_per_s: float
    cached_bytes_per_s: float
    write_bytes_per_s: float

    def __post_init__(self) -> None:
        if not all(0 < one < float("inf") for one in dataclasses.astuple(self)):
            raise PlanError(
                "cannot take these as rates of files",
                element="devices",
                expected="bytes per second above 0",
                got=short_repr(dataclasses.astuple(self)),
            )

    def __str__(self) -> str:
        read, cached, written = (scaled(one, "B/s") for one in dataclasses.astuple(self))
        return f"{read} read from the disk, {cached} from the system's cache, {written} written"


def mount_point(path: str) -> str:
    """Return the mount point above a path, which need not exist."""
    folder = os.path.realpath(path)
    while not os.path.ismount(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def load_file_rates(path: str) -> FileRates | None:
    """Load the rates measured on the file system of a path; None if there are none."""
    mount = mount_point(path)

    def read(data: object) -> FileRates | None:
        kept = expect(data, {"mount": str, "rates": _SHAPE})
        return FileRates(**kept["rates"]) if kept["mount"] == mount else None

    return read_kept(os.path.join(cache_folder(), _FOLDER, _file_name(mount)), read)


def save_file_rates(path: str, rates: FileRates) -> bool:
    """Store the rates of the file system of a path, and return whether they were stored."""
    folder, _ = private_folder(_FOLDER)
    mount = mount_point(path)
    kept = {"mount": mount, "rates": dataclasses.asdict(rates)}
    return folder is not None and write_kept(folder, _file_name(mount), kept)


def _file_name(mount: str) -> str:
    return f"{hashlib.blake2b(os.fsencode(mount), digest_size=12).hexdigest()}.json"
