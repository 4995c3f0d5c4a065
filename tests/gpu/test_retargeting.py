"""Instructions of Hopper in programs: which drivers take them, and what is computed where one does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu.device import all_devices, retargeting
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.programs import program_key
from flowcompute.gpu.render import MARK
from tests.golden.test_golden import HOPPER, NVIDIA
from tests.gpu.tensor_devices import plan_on_paper

PTX = f".version 9.0\n.target sm_90, texmode_independent\n\t{MARK}wgmma.fence.sync.aligned;\n".encode()


class Refusal(Exception):
    """The error of a driver."""


def driver(binary: bytes, *, refuses: str = "") -> tuple[SimpleNamespace, list[Any]]:
    """Return a module of OpenCL whose programs have a binary, and refuse to be built of a text that says something."""
    texts: list[Any] = []

    class Program:
        binaries = (binary,)

        def __init__(self, _context: object, *text: Any) -> None:
            texts.append(text[-1][0] if len(text) > 1 else text[0])

        def build(self, _options: Sequence[str]) -> None:
            if refuses and refuses in str(texts[-1]):
                raise Refusal

    return SimpleNamespace(Program=Program, Error=Refusal), texts


def test_a_driver_is_tried_by_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    module, texts = driver(PTX)
    monkeypatch.setattr(retargeting, "cl", module)
    assert retargeting.takes_marked(None, None)  # type: ignore[arg-type]
    source, text = texts
    assert f"{MARK}fence.proxy.async" in source
    assert text == b".version 9.0\n.target sm_90a, texmode_independent\n\twgmma.fence.sync.aligned;\n"


@pytest.mark.parametrize("refuses", ["asm volatile", "sm_90a"])
def test_a_driver_that_refuses_has_no_such_instructions(monkeypatch: pytest.MonkeyPatch, refuses: str) -> None:
    monkeypatch.setattr(retargeting, "cl", driver(PTX, refuses=refuses)[0])
    assert not retargeting.takes_marked(None, None)  # type: ignore[arg-type]


def test_a_driver_whose_programs_are_no_text_has_no_such_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    module, texts = driver(b"\x7fELF")
    monkeypatch.setattr(retargeting, "cl", module)
    assert not retargeting.takes_marked(None, None)  # type: ignore[arg-type]
    assert len(texts) == 1


def test_where_it_refuses_single_sub_groups_multiply() -> None:
    rows: Any = fc.source(np.zeros((512, 64), np.float16), name="x")
    texts = []
    for capabilities in (NVIDIA, HOPPER):
        assert capabilities.warp_groups == (capabilities is HOPPER)
        (kernel,) = plan_on_paper(
            rows @ fc.constant(np.zeros((64, 128), np.float16)), capabilities=capabilities
        ).kernels
        texts.append(kernel.source)
    assert ("mma.sync" in texts[0], MARK in texts[0]) == (True, False)
    assert ("mma.sync" in texts[1], MARK in texts[1] and "wgmma.mma_async" in texts[1]) == (False, True)


def test_no_other_platform_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    monkeypatch.setattr("flowcompute.gpu.device.device.takes_marked", lambda *_: tried.append(1) or True)
    device = next(one for one in all_devices() if one.kind == "cpu")
    assert (device.has_warp_groups(), tried) == (False, [])
    hopper: Any = SimpleNamespace(
        platform="NVIDIA CUDA",
        handle=SimpleNamespace(compute_capability_major_nv=9),
        context=None,
        _once=lambda _, f: f(),
    )
    assert (Device.has_warp_groups(hopper), tried) == (True, [1])


def test_programs_of_another_driver_are_other_programs() -> None:
    device = next(one for one in all_devices() if one.kind == "cpu")

    def key(kind: str) -> str:
        made: Any = SimpleNamespace(version=device.version, capabilities=replace(device.capabilities, kind=kind))
        return program_key(made, "text", ())

    driver = device.handle.driver_version.strip()
    assert driver in device.capabilities.kind
    assert key(device.capabilities.kind) == program_key(device, "text", ())
    assert key(device.capabilities.kind.replace(driver, "another")) != key(device.capabilities.kind)
