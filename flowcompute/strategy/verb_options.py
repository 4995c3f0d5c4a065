"""The options that each verb has, by name and type. `RunOptions` has their defaults and checks them.

They stand below the elements, whose methods take them, so that editors and type checkers know them there too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO, TypedDict

from flowcompute.strategy.config import Devices, Mode, Precision, Size
from flowcompute.strategy.strategy import Strategy

Tune = bool | Literal["quick", "full"]
"""How a better strategy is looked for; see `tune=` of `fc.start`."""

Every = Literal["auto"] | float | str
"""How often checkpoints are taken; see `checkpoint_every=` of `fc.start`."""

Log = str | os.PathLike[str] | TextIO
"""Where lines of JSON go: a path, or a text file."""


class _MachineOptions(TypedDict, total=False):
    """Options of every verb: the budgets and the device."""

    memory: Size | None
    device: Devices | None
    device_memory: Size | None


class _KernelOptions(_MachineOptions, total=False):
    """Options of every verb that plans kernels."""

    strategy: Strategy | None
    isolate: bool
    launch_timeout_s: float | None


class PlanOptions(_KernelOptions, total=False):
    """Options that every plan depends on."""

    precision: Precision


class PlanVerbOptions(PlanOptions, total=False):
    """Options of `plan`."""

    checkpoint: str | os.PathLike[str] | None


class _ObserveOptions(TypedDict, total=False):
    """Options that say where the numbers of a run go."""

    metrics: bool
    metrics_port: int | str | None
    metrics_log: Log | None
    trace: str | os.PathLike[str] | None


class ThawOptions(_KernelOptions, _ObserveOptions, total=False):
    """Options of `start`, `run` and `resolve` of a thawed job, which keeps its checkpoint and its precision."""

    name: str | None
    progress: bool | None
    throttle: float
    on_batch: Callable[[Any], object] | None
    page: int | None
    stall_timeout_s: float | None
    checkpoint_every: Every
    accept_touched: bool
    tune: Tune


class StartOptions(PlanOptions, ThawOptions, total=False):
    """Options of `start`, `run` and `resolve`."""

    checkpoint: str | os.PathLike[str] | None


class RunVerbOptions(StartOptions, total=False):
    """Options of `run`."""

    cluster: Any
    shards: int | Literal["auto"]
    insecure: bool
    mixed_devices: bool
    resources: Mapping[str, float]


class ThawFlowOptions(_KernelOptions, _ObserveOptions, total=False):
    """Options of `flow` of a thawed flow, which keeps its checkpoint, its precision and its mode."""


class FlowOptions(PlanOptions, ThawFlowOptions, total=False):
    """Options of `open_flow`."""

    mode: Mode
    checkpoint: str | os.PathLike[str] | None


class TuneOptions(_MachineOptions, total=False):
    """Options of `tune_ahead`."""

    precision: Precision
    tune: Literal["quick", "full"]
