"""Code written for GPUs, run by PoCL: work-groups with barriers, upload and download, without a GPU."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element
from flowcompute.gpu.backend import OpenCLBackend
from flowcompute.gpu.device import select_device
from flowcompute.graph.graph import build_graph
from flowcompute.planner.plan import Plan
from flowcompute.planner.planner import make_plan
from flowcompute.runtime.run import start
from flowcompute.sinks import to_array
from flowcompute.strategy import Config, Strategy


@cache
def gpu_shaped() -> OpenCLBackend:
    """The CPU's device, planned for as if it were a discrete GPU."""
    device = copy.copy(select_device("cpu", needs_float64=True))
    device.programs = {}
    device.traits = dataclasses.replace(device.traits, code_shape="gpu", host_memory=False)
    return OpenCLBackend(device)


def plan_for_gpu(*elements: Element, memory: int = 1 << 28, strategy: Strategy | None = None) -> Plan:
    """The plan of these roots on such a device."""
    roots = [element if isinstance(element, Destination) else to_array().bind(element) for element in elements]
    return make_plan(build_graph(roots), Config(memory), strategy or Strategy(), gpu_shaped())


def resolve_on_gpu(*elements: Element, **options: Any) -> list[np.ndarray]:
    """The roots' values, computed by code for GPUs."""
    values = start(plan_for_gpu(*elements, **options), progress=False).wait().values
    return [np.asarray(value) for value in values]
