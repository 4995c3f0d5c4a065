"""A disk in memory that knows what is durable: every state that a crash or a power cut may leave can be made and read.

A process that is killed loses nothing that it told the system. A power cut keeps what was synced, and of the rest any
part: each write may be there, be missing, be there by half, or have left zeros; each change of names may be there or
not, whatever came before or after it. Real file systems leave fewer states than these.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

ROOT = 0
"""The number of the folder `/`."""


class Write(NamedTuple):
    """Bytes put into a file."""

    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file cut or extended."""

    file: int
    size: int


class Names(NamedTuple):
    """Names put into folders, or taken out of them (None), at once; `makes` says what is new under the first."""

    changes: tuple[tuple[int, str, int | None], ...]
    makes: Literal["file", "folder"] | None = None


Effect = Write | Truncate | Names


class Step(NamedTuple):
    """One operation of the file layer.

    Attributes:
        name, path: what was asked, of what.
        effect: what it changed.
        synced: the file or folder that it made durable.
    """

    name: str
    path: str
    effect: Effect | None = None
    synced: int | None = None


class Disk:
    """Files and folders by number."""

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}
        self.folders: dict[int, dict[str, int]] = {ROOT: {}}
        self.last = ROOT

    def copy(self) -> Disk:
        """Another disk with the same contents."""
        disk = Disk()
        disk.files = dict(self.files)
        disk.folders = {number: dict(names) for number, names in self.folders.items()}
        disk.last = self.last
        return disk

    def declare(self, effect: Effect | None) -> None:
        """Let a new file or folder exist, empty, whether or not its name does."""
        if isinstance(effect, Names) and effect.makes is not None:
            number = effect.changes[0][2]
            assert number is not None
            self.last = max(self.last, number)
            if effect.makes == "file":
                self.files.setdefault(number, b"")
            else:
                self.folders.setdefault(number, {})

    def apply(self, effect: Effect) -> None:
        """Change it."""
        self.declare(effect)
        if isinstance(effect, Write):
            old = self.files[effect.file].ljust(effect.offset, b"\0")
            self.files[effect.file] = old[: effect.offset] + effect.data + old[effect.offset + len(effect.data) :]
        elif isinstance(effect, Truncate):
            self.files[effect.file] = self.files[effect.file][: effect.size].ljust(effect.size, b"\0")
        else:
            for folder, name, number in effect.changes:
                if number is None:
                    self.folders[folder].pop(name, None)
                else:
                    self.folders[folder][name] = number

    def tree(self, folder: int = ROOT) -> dict[str, bytes | None]:
        """Contents of all files that have a name, by path; None for folders."""
        found: dict[str, bytes | None] = {}
        for name, number in sorted(self.folders[folder].items()):
            if number in self.files:
                found[f"/{name}"] = self.files[number]
            else:
                found[f"/{name}"] = None
                found.update({f"/{name}{path}": data for path, data in self.tree(number).items()})
        return found


def power_cuts(before: Disk, log: Sequence[Step], most: int, drawn: int, seed: int) -> Iterator[Disk]:
    """The disks that a power cut may leave after these operations.

    Args:
        before: the disk before the first of them, all of it durable.
        log: the operations.
        most: up to so many combinations all are made.
        drawn: of more, so many are drawn.
        seed: for drawing.
    """
    choices = [_outcomes(step.effect, log[index + 1 :]) for index, step in enumerate(log) if step.effect is not None]
    count = 1
    for one in choices:
        count *= len(one)
    generator = random.Random(seed)
    combinations: Iterator[tuple[Effect | None, ...]] = (
        itertools.product(*choices)
        if count <= most
        else (tuple(generator.choice(one) for one in choices) for _ in range(drawn))
    )
    start = before.copy()
    for step in log:
        start.declare(step.effect)
    for effects in combinations:
        disk = start.copy()
        for effect in effects:
            if effect is not None:
                disk.apply(effect)
        yield disk


def _outcomes(effect: Effect, later: Sequence[Step]) -> tuple[Effect | None, ...]:
    """What may become of an effect: itself only, once it was synced."""
    if isinstance(effect, Names):
        touched = {folder for folder, _, _ in effect.changes}
        # A rename between folders is one change, durable as soon as either of them is.
        if any(step.synced in touched for step in later if step.synced is not None):
            return (effect,)
        return (None, effect)
    if any(step.synced == effect.file for step in later):
        return (effect,)
    if isinstance(effect, Truncate):
        return (None, effect)
    half, zeros = effect.data[: len(effect.data) // 2], bytes(len(effect.data))
    return (None, effect, effect._replace(data=half), effect._replace(data=zeros))
