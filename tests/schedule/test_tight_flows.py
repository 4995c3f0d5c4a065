"""Values that are computed again in flows that are fed by hand: equal bits, in less memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError
from tests.schedule.test_tight_plans import ENOUGH, parameter, recomputes, value_bytes

SIDE = 32
IMAGES = np.random.default_rng(7).standard_normal((9, 2, SIDE, SIDE), dtype=np.float32)


def fed() -> tuple[Any, ...]:
    """A loss of records that are sent, its gradients, the loss of each record, and the sum of these so far."""
    h, channels, held = fc.feed((2, SIDE, SIDE), np.float32, name="x"), 2, []
    for place in range(5):
        held.append(parameter(f"w{place}", 3, channels, 3, 3))
        h, channels = fc.nn.relu(fc.nn.conv2d(h, held[-1], padding=1)), 3
        h = h - h.mean(axis=(2, 3), keepdims=True)
    each = (h * h).mean(axis=(1, 2, 3))
    loss = each.mean()
    return loss, *fc.grad(loss, held), each, fc.cumulative_sum(each)


def flow_of(elements: tuple[Any, ...], **options: Any) -> Any:
    return fc.open_flow(*elements, device="numpy", **options)


def least_of_flow(elements: tuple[Any, ...]) -> int:
    """Return about the least budget of a flow."""
    fits, fails = 1 << 19, 1 << 17
    while fits - fails > fits // 40:
        memory = (fits + fails) // 2
        try:
            with flow_of(elements, memory=memory):
                fits = memory
        except PlanError:
            fails = memory
    return fits


def sent(flow: Any, parts: list[np.ndarray]) -> list[bytes]:
    received: list[Any] = []
    for part in parts:
        flow.send(part)
        received += flow.receive()
    return value_bytes(received)


def test_a_flow_computes_again() -> None:
    elements, parts = fed(), [IMAGES[:1], IMAGES[1:4], IMAGES[4:]]
    found = []
    least = least_of_flow(elements)
    for memory in (ENOUGH, least):
        with flow_of(elements, memory=memory) as flow:
            received = sent(flow, parts)
            found.append([recomputes(flow.plan), received, value_bytes(flow.resolve()), [*flow.carried()]])
    assert [one.pop(0) for one in found] == [False, True]
    assert found[1] == found[0]


@pytest.mark.parametrize("first_is_tight", [True, False])
def test_a_frozen_flow_goes_on_under_any_budget(first_is_tight: bool, tmp_path: Path) -> None:
    """With results that wait, and what scans and folds hold."""
    elements, tight = fed(), {"memory": least_of_flow(fed())}
    with flow_of(elements, memory=ENOUGH) as flow:
        flow.send(IMAGES[:4])
        flow.send(IMAGES[4:])
        whole = value_bytes([*flow.receive(), *flow.receive(), *flow.resolve()])
    first, second = (tight, {"memory": ENOUGH}) if first_is_tight else ({"memory": ENOUGH}, tight)
    with flow_of(elements, **first) as flow:
        flow.send(IMAGES[:4])
        carried = flow.carried()
        flow.freeze(tmp_path / "kept")
    with fc.thaw(tmp_path / "kept").flow(device="numpy", **second) as flow:
        assert repr(flow.carried()) == repr(carried)
        flow.send(IMAGES[4:])
        assert value_bytes([*flow.receive(), *flow.receive(), *flow.resolve()]) == whole
