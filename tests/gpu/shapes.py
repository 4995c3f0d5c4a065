"""Code written for GPUs, run by PoCL: work-groups with barriers, upload and download, without a GPU."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.engine.backend import PlannedJob
from flowcompute.engine.split_backend import SplitBackend
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.discovery import select_device
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.strategy.strategy import Strategy
from tests.support.starting import start


@cache
def gpu_shaped(*, in_place: bool = False) -> OpenCLBackend:
    """The CPU's device, planned for as if it were a discrete GPU, or one in the host's memory."""
    device = copy.copy(select_device("cpu", needs_float64=True))
    device.programs = {}
    # What is tested here is our code, not PoCL's optimiser, which takes several times as long.
    device.build_options = ("-cl-opt-disable",)
    device.capabilities = dataclasses.replace(device.capabilities, code_shape="gpu", host_memory=in_place)
    return OpenCLBackend(device)


def twin(device: Device) -> Device:
    """The same hardware with a context, queues and programs of its own."""
    other = copy.copy(device)
    other.programs, other._made = {}, {}
    return other


@cache
def two_gpus() -> SplitBackend:
    """Two such devices that each compute a part of the graph: "gpu" and "gpu:1"."""
    return SplitBackend([gpu_shaped(), OpenCLBackend(twin(gpu_shaped().device))], {"gpu": 0, "gpu:1": 1})


def apart(strategy: Strategy | None) -> Strategy:
    """A strategy whose batches are computed one by one, where it does not say otherwise: tests want several."""
    given = strategy or Strategy()
    return dataclasses.replace(given, joined_batches=given.joined_batches or 1)


def plan_for_gpu(*elements: Element, memory: int = 1 << 28, strategy: Strategy | None = None, **options: Any) -> Plan:
    """The plan of these roots on such a device; options are those of `fc.plan`."""
    options["strategy"] = apart(strategy)
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        return fc.plan(*elements, memory=memory, **options)


def job_on_gpu(plan: Plan) -> PlannedJob:
    """A plan of such a device, ready to be run there."""
    return PlannedJob(plan, gpu_shaped())


def resolve_on_gpu(*elements: Element, **options: Any) -> list[np.ndarray]:
    """The roots' values, computed by code for GPUs."""
    values = start(job_on_gpu(plan_for_gpu(*elements, **options)), progress=False).wait().values
    return [np.asarray(value) for value in values]


def run_on_gpu(*roots: Element, backend: OpenCLBackend | None = None, **options: Any) -> fc.Run:
    """A finished run of these roots in small batches on such a device, or on others; options are those of `fc.run`."""
    options["strategy"] = apart(options.get("strategy", Strategy(batch_bytes=1 << 14)))
    with mock.patch.object(OpenCLBackend, "select", return_value=backend or gpu_shaped()):
        return fc.run(*roots, progress=False, **options)
