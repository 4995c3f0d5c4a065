"""A device with tensor cores: on paper, emulated, and the real one where there is any."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flowcompute.elements import Kind
from flowcompute.elements.compute import Constant
from flowcompute.elements.element import Element
from flowcompute.errors import PlanError
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.discovery import all_devices, select_device
from flowcompute.gpu.device.programs import build
from flowcompute.ir import HandOver, TakeOver, view_array
from flowcompute.ir.capabilities import DeviceCapabilities
from flowcompute.lower.kernel_cache import RegionPart
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS, make_plan
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.config import Config
from flowcompute.strategy.strategy import Strategy
from tests.golden.test_golden import NVIDIA, graph_of, on_paper
from tests.gpu import emulator
from tests.gpu.emulator import emulate

GROUPS = 3
_STRING, _BRACKETS = r'"[^"\n]*"', r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_ASSEMBLY = re.compile(rf"asm(?: volatile)?\((?:{_STRING}|{_BRACKETS}|[^()\"])*\)(?=;)")
"""Inline assembly: strings, in which brackets need not match, and operands, in which they do."""


def plan_on_paper(
    *elements: Element, capabilities: DeviceCapabilities = NVIDIA, strategy: Strategy | None = None, **config: Any
) -> Plan:
    """The plan of these roots on such a device, or another."""
    graph = graph_of([*elements], capabilities)
    return make_plan(graph, Config(1 << 32, **config), strategy or Strategy(), on_paper(capabilities))


def emulated(element: Element, streams: Mapping[str, np.ndarray], *, few: bool = False, **config: Any) -> np.ndarray:
    """The value of a root that is one kernel of its streams, whose arrays go by the name of their source.

    With `few` it is that by the kernel for few rows.
    """
    plan = plan_on_paper(element, **config)
    *before, step = (step for step in plan.steps if isinstance(step, RegionStep))
    assert not any(one.region.stream for one in before), "one kernel of streams"
    kernel = step.kernel.of_few if few and step.kernel is not None else step.kernel
    assert kernel is not None
    nodes = plan.graph.nodes
    # Bodies have the numbers of the part of the graph that was lowered.
    values = RegionPart(plan.graph, step.region).values
    items = len(next(iter(streams.values()))) if nodes[step.region.outputs[0]].spec.is_stream else 1
    arrays = {}
    for argument in kernel.arguments:
        if argument.kind in ("maps", "words", "room"):
            continue
        node = nodes[argument.value]
        place = values.index(node.id)
        if argument.kind == "output":
            arrays[place] = np.empty((items, *node.spec.shape), node.spec.dtype)
        else:
            arrays[place] = streams[node.name] if node.spec.is_stream else _resident(plan, node.id)
    numbered = (
        replace(one, value=values.index(one.value) if one.value >= 0 else one.value) for one in kernel.arguments
    )
    kernel = replace(kernel, arguments=tuple(numbered))
    ((place, made),) = emulate(kernel, arrays, items * kernel.units, GROUPS).items()
    return made.reshape(items, *nodes[values[place]].spec.shape)


@contextmanager
def handed_over(monkeypatch: pytest.MonkeyPatch, least: str) -> Iterator[list[int]]:
    """A time in which even the smallest tasks may be handed over, and the places that are used.

    Each place is there twice: of who hands over, and of who takes over. `least` is the name of the size of tasks.
    """
    places: list[int] = []
    place_of = emulator.WorkGroup.place_of

    def noted(self: emulator.WorkGroup, one: HandOver | TakeOver) -> int:
        places.append(place := place_of(self, one))
        return place

    with monkeypatch.context() as patched:
        patched.setattr(emulator.WorkGroup, "place_of", noted)
        patched.setattr(least, 0)
        PLANS.clear()
        KERNELS.clear()
        yield places
    PLANS.clear()
    KERNELS.clear()


def _resident(plan: Plan, value: int) -> np.ndarray:
    """A resident value, by NumPy."""
    node = plan.graph.nodes[value]
    if isinstance(node.element, Constant):
        return node.element.value
    operands = [_resident(plan, i) for i in node.inputs]
    if node.kind is Kind.VIEW:
        return view_array(node, operands, stream=False)
    assert node.op is not None
    return np.asarray(node.op.numpy(*operands), order="C")


def real_device() -> str:
    """What to give as `device=`; the test is skipped where no device has tensor cores."""
    if cl is not None:
        try:
            gpus = [device for device in all_devices() if device.kind == "gpu"]
        except PlanError:
            gpus = []
        for position, device in enumerate(gpus):
            if device.capabilities.tensor_cores:
                return f"gpu:{position}"
    pytest.skip("needs an NVIDIA GPU of compute capability 8.0 or more with its OpenCL driver")


def compiles_without_assembly(text: str) -> bool:
    """Whether the CPU's compiler takes a kernel whose inline assembly is left out; it raises what it says if not."""
    plain = _ASSEMBLY.sub("", text)
    assert plain != text
    while _ASSEMBLY.search(plain):
        plain = _ASSEMBLY.sub("", plain)
    return build(select_device("cpu", needs_float64=False), plain) is not None
