"""The options of a run on a cluster, checked in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from flowcompute.errors import PlanError, short_repr
from flowcompute.imports import dataclass
from flowcompute.runtime.options import RunOptions
from flowcompute.strategy import StartOptions

_PLANNED = frozenset({"memory", "device", "precision"})
_KEPT = frozenset({"checkpoint", "checkpoint_every", "throttle"})
_SEEN = frozenset({"progress", "name", "metrics", "metrics_port", "metrics_log", "page"})
_KNOWN = _PLANNED | _KEPT | _SEEN
_EVERY_S = 10.0
_PER_WORKER = 4


@dataclass(frozen=True)
class ClusterOptions:
    """Wishes of a user for a run on a cluster.

    Attributes:
        client: a `distributed.Client`; None for this process.
        shards: the most shards of a stage; None for four a worker.
        insecure: allows schedulers that other machines reach without TLS.
        mixed_devices: allows workers whose devices are of another kind, and so other bits.
        resources: what a shard takes of the resources that a worker was started with.
        every_s: seconds between two states of a shard that are kept.
        run: the options that a run has, too.
    """

    client: object
    shards: int | None
    insecure: bool
    mixed_devices: bool
    resources: Mapping[str, float]
    every_s: float
    run: RunOptions

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Return the record of the options that were given to `fc.run`.

        Raises:
            PlanError: naming an option that clusters do not have, or one whose value it cannot have.
        """
        own = {name: given[name] for name in given.keys() & cls.names()}
        others = {name: given[name] for name in given.keys() - own.keys()}
        # What changes nothing may be said.
        usual = RunOptions()
        asked = {name for name in others if others[name] != getattr(usual, name, others)}
        for name in sorted(asked - _KNOWN):
            raise PlanError(
                f"cannot use {name}= on a cluster",
                element=name,
                expected=" or ".join(f"{one}=" for one in sorted(_KNOWN)),
                hint=f"leave out {name}=",
            )
        every_s = _seconds(others.get("checkpoint_every", "auto"))
        for name in ("insecure", "mixed_devices"):
            if not isinstance(own.get(name, False), bool):
                raise PlanError(
                    "cannot use this value", element=name, expected="True or False", got=short_repr(own[name])
                )
        return cls(
            own.get("cluster"),
            _shards(own.get("shards", "auto")),
            own.get("insecure", False),
            own.get("mixed_devices", False),
            _resources(own.get("resources")),
            every_s,
            RunOptions.parse("run", others, StartOptions),
        )

    @staticmethod
    def names() -> frozenset[str]:
        """Return the names of the options that only clusters have."""
        return frozenset({"cluster", "shards", "insecure", "mixed_devices", "resources"})

    @property
    def planned(self) -> dict[str, Any]:
        """The options of `fc.plan`."""
        return {name: getattr(self.run, name) for name in _PLANNED}

    def most_shards(self, workers: int) -> int:
        """Return the most shards of a stage, for so many workers."""
        return _PER_WORKER * max(1, workers) if self.shards is None else self.shards


def _shards(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PlanError(
            "cannot cut a job into so many shards",
            element="shards",
            expected='a positive whole number, or "auto"',
            got=short_repr(value),
            hint="as shards=8",
        )
    return value


def _resources(value: object) -> dict[str, float]:
    if value is None:
        return {}
    if isinstance(value, Mapping) and all(isinstance(name, str) and _is_amount(value[name]) for name in value):
        return {str(name): value[name] for name in value}
    raise PlanError(
        "cannot use this value",
        element="resources",
        expected="positive numbers by the names of resources",
        got=short_repr(value),
        hint='as resources={"GPU": 1}',
    )


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _seconds(value: object) -> float:
    if value == "auto":
        return _EVERY_S
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise PlanError(
            "cannot use this checkpoint_every= on a cluster",
            element="checkpoint_every",
            expected="seconds",
            got=short_repr(value),
        )
    return float(value)
