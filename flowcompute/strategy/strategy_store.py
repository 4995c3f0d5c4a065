"""Store of tuned strategies between runs: one readable file for each job or kernel, device and size.

Processes may read and write at any time (see `kept_files.py`). Of two that tuned the same thing, the later one wins. No
error here ever fails a run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Literal

from flowcompute.errors import PlanError
from flowcompute.files import (
    TEMPORARY,
    Each,
    ForeignJsonError,
    Maybe,
    cache_folder,
    expect,
    private_folder,
    read_json,
)
from flowcompute.imports import dataclass, hashlib, logging
from flowcompute.strategy.kept_files import read_kept, write_kept
from flowcompute.strategy.pace import Pace
from flowcompute.strategy.strategy import Strategy
from flowcompute.strategy.trial import TUNING_SHAPE, Tuning
from flowcompute.version import __version__

FORMAT = 1
LIMIT_FILES = 4096
"""Largest number of stored strategies. The least recently used are deleted first."""

_PREFIXES = ("job-", "kernel-")
"""Prefixes of the names of files that hold a strategy."""

_LIMIT_EXPORTED_BYTES = 256 << 20

_TOLD: set[str] = set()


@dataclass(frozen=True)
class Key:
    """The job or kernel, the device and the size that a strategy applies to.

    Attributes:
        kind: whether `what` is the structural hash of a job, or the digest of a kernel's text.
        what: hash or digest.
        device: platform, driver and device (`DeviceCapabilities.kind`).
        size: the relevant sizes, rounded.
        version: version of flowcompute.
    """

    kind: Literal["job", "kernel"]
    what: str
    device: str
    size: str
    version: str = __version__

    @property
    def file_name(self) -> str:
        """Name of its file."""
        text = "\0".join((self.kind, self.what, self.device, self.size, self.version))
        return f"{self.kind}-{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}.json"


@dataclass(frozen=True)
class Stored:
    """A stored strategy.

    Attributes:
        key: what it applies to.
        about: description of the job or kernel.
        strategy: the knobs.
        tuning: how they were found.
        when: time at which they were found, in seconds since 1970.
        pace: time per record in the first run that began with them.
        drift: ratio of the time per record in a later run to `pace`, if it exceeded the noise.
    """

    key: Key
    about: str
    strategy: Strategy
    tuning: Tuning = field(default_factory=Tuning)
    when: int = 0
    pace: Pace | None = None
    drift: float | None = None

    def plain(self) -> dict[str, Any]:
        """Return the strategy as plain data."""
        key = self.key
        return {
            "format": FORMAT,
            "kind": key.kind,
            "what": key.what,
            "about": self.about,
            "device": key.device,
            "size": key.size,
            "version": key.version,
            "when": self.when,
            "strategy": self.strategy.plain(),
            "tuning": self.tuning.plain(),
            "pace": None if self.pace is None else dataclasses.asdict(self.pace),
            "drift": self.drift,
        }

    @classmethod
    def from_plain(cls, data: object) -> Stored:
        """Construct the strategy from the result of `plain`.

        Raises:
            PlanError: if `data` is something else.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            got = data.get("format") if isinstance(data, Mapping) else type(data).__name__
            raise PlanError(
                "cannot read this as a stored strategy", element="strategies", expected=f"format {FORMAT}", got=got
            )
        try:
            expect(data, _SHAPE)
            if not 0 <= data["when"] < _END_S:
                raise ForeignJsonError(f"when is {data['when']}")
            # It is printed.
            json.dumps(data, ensure_ascii=False).encode()
        except (ForeignJsonError, UnicodeEncodeError) as error:
            raise PlanError("cannot read this as a stored strategy", element="strategies", got=str(error)) from error
        texts = (str(data[name]) for name in ("what", "device", "size", "version"))
        key = Key("job" if data["kind"] == "job" else "kernel", *texts)
        strategy, tuning = Strategy.from_plain(data["strategy"]), Tuning.from_plain(data["tuning"])
        pace, drift = data.get("pace"), data.get("drift")
        known = None if pace is None else Pace(float(pace["record_s"]), float(pace["noise"]))
        return cls(key, data["about"], strategy, tuning, data["when"], known, None if drift is None else float(drift))


_END_S = 253_402_300_800
"""The end of the year 9999, beyond which there are no dates."""

_SHAPE: dict[str, Any] = {
    "kind": ("job", "kernel"),
    **dict.fromkeys(("what", "about", "device", "size", "version"), str),
    "when": int,
    "strategy": Each(object),
    "tuning": TUNING_SHAPE,
    "pace": Maybe({"record_s": float, "noise": float}),
    "drift": Maybe(float),
}


class StrategyStore:
    """Strategies on disk, in the folder `strategies` of the user's cache folder.

    Attributes:
        folder: the folder of the files; None if nothing is stored.
        reason: why nothing is stored; otherwise empty.
    """

    def __init__(self) -> None:
        self.folder, self.reason = private_folder("strategies")
        if self.folder is None and self.reason not in _TOLD:
            _TOLD.add(self.reason)
            logging.getLogger(__name__).warning("cannot store strategies: %s", self.reason)

    @classmethod
    def existing(cls) -> StrategyStore | None:
        """Open the store if it holds anything. Creates no folder."""
        # Asked for each plan, so before the folder is looked at more closely.
        try:
            with os.scandir(os.path.join(cache_folder(), "strategies")) as entries:
                holds = any(entry.name.startswith(_PREFIXES) for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            holds = True
        return cls() if holds else None

    def has_kernels(self) -> bool:
        """Check whether the store holds any knobs of kernels."""
        return any(os.path.basename(path).startswith("kernel-") for path in self._paths())

    def load(self, key: Key) -> Stored | None:
        """Load the strategy stored for a key, or None."""
        if self.folder is None:
            return None
        path = os.path.join(self.folder, key.file_name)
        stored = self._read(path)
        if stored is None or stored.key != key:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return stored

    def save(self, stored: Stored) -> bool:
        """Store a strategy in place of the previous one of its key, and return whether it was stored."""
        if self.folder is None or not write_kept(self.folder, stored.key.file_name, stored.plain()):
            return False
        with contextlib.suppress(OSError):
            self._trim()
        return True

    def every(self) -> list[Stored]:
        """Return all strategies, the latest first."""
        found = [self._read(path) for path in self._paths()]
        return sorted((one for one in found if one is not None), key=lambda one: (-one.when, one.key.file_name))

    def clear(self) -> int:
        """Delete all strategies and return their number.

        Raises:
            PlanError: if one cannot be deleted.
        """
        count = 0
        for path in self._paths(temporaries=True):
            try:
                os.unlink(path)
                count += not os.path.basename(path).startswith(TEMPORARY)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise PlanError(f"cannot remove {path}: {error.strerror}", element="strategies") from error
        return count

    def _paths(self, *, temporaries: bool = False) -> Iterator[str]:
        if self.folder is None:
            return
        prefixes = (*_PREFIXES, TEMPORARY) if temporaries else _PREFIXES
        with os.scandir(self.folder) as entries:
            yield from sorted(entry.path for entry in entries if entry.name.startswith(prefixes))

    def _read(self, path: str) -> Stored | None:
        return read_kept(path, Stored.from_plain)

    def _trim(self) -> None:
        paths = list(self._paths(temporaries=True))
        if len(paths) <= LIMIT_FILES:
            return
        ages = []
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                ages.append((os.stat(path).st_mtime, path))
        for _, path in sorted(ages)[: len(ages) - LIMIT_FILES]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def export_strategies(stored: list[Stored]) -> str:
    """Return strategies as text for another machine, without the pace, which depends on the machine."""
    plain = [dataclasses.replace(one, pace=None, drift=None).plain() for one in stored]
    return json.dumps({"format": FORMAT, "strategies": plain}, indent=1, sort_keys=True)


def read_exported(text: bytes | str) -> list[Stored]:
    """Read the strategies that `export_strategies` wrote.

    Raises:
        PlanError: if the text is something else.
    """
    try:
        return read_json(text, _exported, limit_bytes=_LIMIT_EXPORTED_BYTES)
    except ForeignJsonError as error:
        raise PlanError(
            "cannot read the text as exported strategies",
            element="strategies",
            got=str(error),
            hint="flowcompute strategies export FILE writes them",
        ) from error


def _exported(data: object) -> list[Stored]:
    return [Stored.from_plain(one) for one in expect(data, {"strategies": [Each(object)]})["strategies"]]
