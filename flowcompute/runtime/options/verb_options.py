"""The options that each verb has, by name and type. `RunOptions` has their defaults and checks them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, TypedDict

from flowcompute.observe import Log
from flowcompute.runtime.checkpoints import Every
from flowcompute.strategy import Devices, Mode, Precision, Size, Strategy

Tune = bool | Literal["quick", "full"]
"""How a better strategy is looked for; see `tune=` of `fc.start`."""


class _MachineOptions(TypedDict, total=False):
    """Options of every verb: the budgets, the device and the rounding."""

    memory: Size | None
    device: Devices | None
    device_memory: Size | None
    precision: Precision


class PlanOptions(_MachineOptions, total=False):
    """Options of `plan`."""

    strategy: Strategy | None
    isolate: bool
    launch_timeout_s: float | None


class _ObserveOptions(TypedDict, total=False):
    """Options that say where the numbers of a run go."""

    metrics: bool
    metrics_port: int | str | None
    metrics_log: Log | None
    trace: str | os.PathLike[str] | None


class StartOptions(PlanOptions, _ObserveOptions, total=False):
    """Options of `start`, `run` and `resolve`."""

    name: str | None
    progress: bool | None
    throttle: float
    on_batch: Callable[[Any], object] | None
    stall_timeout_s: float | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: Every
    tune: Tune


class FlowOptions(PlanOptions, _ObserveOptions, total=False):
    """Options of `open_flow`."""

    mode: Mode
    checkpoint: str | os.PathLike[str] | None


class TuneOptions(_MachineOptions, total=False):
    """Options of `tune_ahead`."""

    tune: Literal["quick", "full"]
