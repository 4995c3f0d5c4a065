"""Branches whose condition is known are inlined; loops whose number of turns is known are unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements import Constant
from flowcompute.onnx.logical_value import Value
from flowcompute.onnx.operators.arrays import picked, stacked
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal

MOST_UNROLLED = 1024
"""Nodes that a loop may become."""


def _if(call: NodeCall) -> Any:
    (condition,) = call[0].wholes("the condition")
    return call.run(call.attribute("then_branch" if condition else "else_branch"), ())


def _loop(call: NodeCall) -> list[Value]:
    body, turns, condition = call.attribute("body"), call.get(0), call.get(1)
    carried = [value for value in call.values[2:] if value is not None]
    goes_on = condition is None or bool(condition.wholes("the condition")[0])
    most = MOST_UNROLLED + 1 if turns is None else turns.ints("the number of turns")[0]
    scanned: list[list[Value]] = [[] for _ in range(len(body.outputs) - 1 - len(carried))]
    turn = 0
    while goes_on and turn < most:
        _check_length(turn + 1, body)
        number, still = (Value.of(Constant(np.asarray(one))) for one in (np.int64(turn), np.bool_(True)))
        condition, *made = call.run(body, [number, still, *carried])
        carried = made[: len(carried)]
        for kept, one in zip(scanned, made[len(carried) :], strict=True):
            kept.append(one)
        goes_on = bool(condition.wholes("the condition of a turn")[0])
        turn += 1
    if any(not kept for kept in scanned):
        raise Refusal("unknown", "results of a loop without turns", "leave the loop out")
    return [*carried, *(stacked(kept, 0) for kept in scanned)]


def _check_length(turns: int, body: Any) -> None:
    if turns * max(len(body.nodes), 1) > MOST_UNROLLED:
        raise Refusal("unbounded", f"a loop of more than {MOST_UNROLLED} nodes", "make it shorter, or unroll it")


def _scan(call: NodeCall) -> list[Value]:
    body, count = call.attribute("body"), call.attribute("num_scan_inputs")
    values = call.given
    carried, scanned = values[: len(values) - count], values[len(values) - count :]
    made_count = len(body.outputs) - len(carried)
    axes = [
        value.normal(axis)
        for value, axis in zip(scanned, call.attribute("scan_input_axes") or (0,) * count, strict=True)
    ]
    turned = call.attribute("scan_input_directions") or (0,) * count
    out_axes = call.attribute("scan_output_axes") or (0,) * made_count
    out_turned = call.attribute("scan_output_directions") or (0,) * made_count
    carried, kept = _turns(call, carried, scanned, axes, turned)
    results = []
    for own, axis, back in zip(kept, out_axes, out_turned, strict=True):
        results.append(stacked(own[::-1] if back else own, axis))
    return [*carried, *results]


def _scan_of_records(call: NodeCall) -> list[Value]:
    """Scan as of opset 8: each record of (N, turns, ...) by itself."""
    count, values = call.attribute("num_scan_inputs"), [value for value in call.values[1:] if value is not None]
    if call.get(0) is not None:
        raise Refusal("missing", "sequences of several lengths", "convert the model to opset 9 or later")
    if any(value.axis is not None for value in values):
        raise Refusal("batch axis", "a scan of a stream, as of opset 8", "convert the model to opset 9 or later")
    records = {value.size(0) for value in values}
    if len(records) != 1 or 0 in records:
        raise Refusal("invalid", f"scans of {sorted(records)} records", "correct the model")
    (total,) = records
    _check_length(total * values[-1].size(1), call.attribute("body"))
    made: list[list[Value]] = []
    for record in range(total):
        own = [picked(value, 0, record) for value in values]
        first = len(own) - count
        directions = call.attribute("directions") or (0,) * count
        carried, kept = _turns(call, own[:first], own[first:], [0] * count, directions)
        made.append([*carried, *(stacked(one, 0) for one in kept)])
    return [stacked(list(one), 0) for one in zip(*made, strict=True)]


def _turns(
    call: NodeCall, carried: list[Value], scanned: list[Value], axes: Sequence[int], turned: Sequence[int]
) -> tuple[list[Value], list[list[Value]]]:
    """Return what the last turn carries, and the other results of each turn."""
    body = call.attribute("body")
    for value, axis in zip(scanned, axes, strict=True):
        value.item_axis(axis, "scan along")
    turns = {value.size(axis) for value, axis in zip(scanned, axes, strict=True)}
    if len(turns) != 1 or 0 in turns:
        raise Refusal("invalid", f"scans of {sorted(turns)} turns", "correct the model")
    (total,) = turns
    _check_length(total, body)
    kept: list[list[Value]] = [[] for _ in range(len(body.outputs) - len(carried))]
    for turn in range(total):
        parts = [
            picked(value, axis, total - 1 - turn if back else turn)
            for value, axis, back in zip(scanned, axes, turned, strict=True)
        ]
        made = call.run(body, [*carried, *parts])
        carried = made[: len(carried)]
        for own, one in zip(kept, made[len(carried) :], strict=True):
            own.append(one)
    return carried, kept


_SCANNED = {"body": REQUIRED, "num_scan_inputs": REQUIRED}

OPERATORS: tuple[Operator, ...] = (
    Operator("If", _if, attributes={"then_branch": REQUIRED, "else_branch": REQUIRED}),
    Operator("Loop", _loop, attributes={"body": REQUIRED}),
    Operator("Scan", _scan_of_records, 8, 9, attributes={**_SCANNED, "directions": None}),
    Operator(
        "Scan",
        _scan,
        9,
        attributes={
            **_SCANNED,
            **dict.fromkeys(("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")),
        },
    ),
)
