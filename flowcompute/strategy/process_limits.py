"""Memory and cores that this process may have: the machine's, or less where a control group or a limit says so.

A control group (containers, systemd, Slurm) is found as cgroups(7) says. `/proc/self/cgroup` has the group's path in
each hierarchy, and `/proc/self/mountinfo` the place where that hierarchy is mounted. Each group above counts too.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from flowcompute.thread_pool import own_cores

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_UNIFIED = ("memory.max", "memory.high")
_LEGACY = ("memory.limit_in_bytes",)


class _Hierarchy(NamedTuple):
    """A mounted hierarchy of control groups that may have a controller.

    Attributes:
        group: what part of the hierarchy is mounted: "/" for all of it.
        folder: where.
        unified: whether it is version 2.
    """

    group: str
    folder: str
    unified: bool


def default_memory_bytes(system: str = "/") -> int:
    """Return half of the memory that this process may have.

    Args:
        system: the folder that holds `proc` and `sys`; another one only in tests.
    """
    return min(_limits(system)) // 2


def core_limit(system: str = "/") -> int:
    """Return how many cores this process can keep busy, at least 1: its own, or fewer by quotas of control groups.

    Args:
        system: as for `default_memory_bytes`.
    """
    quotas = (_quota(folder, unified) for folder, unified in _group_folders(system, "cpu"))
    return max(1, min([len(own_cores()), *(int(one) for one in quotas if one is not None)]))


def spare_memory_bytes(system: str = "/") -> int:
    """Return what this process may have beside its memory that the system cannot take back; 0 where nobody says.

    Args:
        system: as for `default_memory_bytes`.
    """
    # The size of the process, its pages in memory, and those of them that lie in files.
    counts = "".join(_lines(f"{system}/proc/self/statm")).split()[:3]
    if len(counts) < 3:
        return 0
    _, pages, of_files = map(int, counts)
    return min(_limits(system)) - (pages - of_files) * os.sysconf("SC_PAGE_SIZE")


def _limits(system: str) -> Iterator[int]:
    yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if resource is not None:
        for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            soft, _ = resource.getrlimit(limit)
            if soft != resource.RLIM_INFINITY:
                yield soft
    yield from _limits_of_groups(system, int(time.monotonic()))


@functools.lru_cache(maxsize=4)
def _limits_of_groups(system: str, _second: int) -> tuple[int, ...]:
    """Return the limits of the groups of this process, read once in each second of the clock.

    Small runs follow each other in less than a hundredth of that, and reading takes as long as planning a known job.
    """
    return tuple(
        limit
        for folder, unified in _group_folders(system, "memory")
        for name in (_UNIFIED if unified else _LEGACY)
        # "max" is no limit, and neither is 0 of a hierarchy whose limit nobody has set.
        if (limit := _whole(_words(f"{folder}/{name}"))) > 0
    )


def _quota(folder: str, unified: bool) -> float | None:
    """Return the cores' worth of time that a group may have; None without a limit, which is "max", -1 or no file."""
    if unified:
        words = _words(f"{folder}/cpu.max")
    else:
        words = [*_words(f"{folder}/cpu.cfs_quota_us"), *_words(f"{folder}/cpu.cfs_period_us")]
    time_us, period_us = _whole(words[:1]), _whole(words[1:])
    return time_us / period_us if time_us and period_us else None


def _group_folders(system: str, controller: str) -> Iterator[tuple[str, bool]]:
    """Yield the folders of this process's groups and of those above them, and whether each is of version 2."""
    mounted = tuple(_hierarchies(system, controller))
    for unified, path in _groups(system, controller):
        for hierarchy in mounted:
            if hierarchy.unified == unified:
                for folder in _folders(system, hierarchy, path):
                    yield folder, unified


def _groups(system: str, controller: str) -> Iterator[tuple[bool, str]]:
    """Yield whether a hierarchy is version 2, and the path of this process's group in it, where it may limit."""
    for line in _lines(f"{system}/proc/self/cgroup"):
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            yield True, path
        elif controller in controllers.split(","):
            yield False, path


def _hierarchies(system: str, controller: str) -> Iterator[_Hierarchy]:
    for line in _lines(f"{system}/proc/self/mountinfo"):
        if "cgroup" not in line:
            continue
        before, _, after = line.partition(" - ")
        place, kind = before.split(), after.split()
        if len(place) < 5 or len(kind) < 3:
            continue
        unified = kind[0] == "cgroup2"
        if unified or (kind[0] == "cgroup" and controller in kind[2].split(",")):
            yield _Hierarchy(_unescaped(place[3]), _unescaped(place[4]), unified)


def _folders(system: str, hierarchy: _Hierarchy, path: str) -> Iterator[str]:
    """Yield the folders of a group and of those above it, as far as they can be seen."""
    inside = os.path.relpath(path, hierarchy.group)
    # A group outside of what is mounted, as in a container: what is mounted is its own then.
    parts = [] if inside == "." or inside.startswith("..") else inside.split("/")
    for depth in range(len(parts), -1, -1):
        yield "/".join([system.rstrip("/") + hierarchy.folder, *parts[:depth]])


def _words(path: str) -> list[str]:
    return " ".join(_lines(path)).split()


def _whole(words: list[str]) -> int:
    """Return the whole number that is the only word, or 0."""
    return int(words[0]) if len(words) == 1 and words[0].isdecimal() else 0


def _lines(path: str) -> list[str]:
    # Without the layers of a text file, which take three times as long.
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        return file.readall().decode("utf-8", "surrogateescape").splitlines()
    return []


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
