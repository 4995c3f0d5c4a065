"""The canonical order of reductions once more, number by number in plain Python: slow, and written from its description."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.ir.reduction_order import identity

Number = Any
Step = Callable[[Number, Number], Number]


def _larger(a: Number, b: Number) -> Number:
    """NaN before all; of two zeros +0."""
    if a != a or b != b:
        return a if a != a else b
    if a == b:
        return b if a == 0 and np.signbit(a) else a
    return a if a > b else b


def _smaller(a: Number, b: Number) -> Number:
    """NaN before all; of two zeros -0."""
    if a != a or b != b:
        return a if a != a else b
    if a == b:
        return b if a == 0 and np.signbit(b) else a
    return a if a < b else b


def _first(op: str) -> Step:
    """Of two pairs (value, index) the one with the first NaN, else with the first best value."""

    def step(a: Number, b: Number) -> Number:
        if a[0] != a[0] or b[0] != b[0]:
            if a[0] != a[0] and b[0] != b[0]:
                return min(a, b, key=lambda pair: pair[1])
            return a if a[0] != a[0] else b
        if a[0] == b[0]:
            return min(a, b, key=lambda pair: pair[1])
        return a if (a[0] > b[0]) == (op == "argmax") else b

    return step


def step_of(op: str) -> Step:
    """Two numbers as one; pairs (value, index) for argmin and argmax."""
    if op.startswith("arg"):
        return _first(op)
    steps: dict[str, Step] = {
        "sum": lambda a, b: a + b,
        "prod": lambda a, b: a * b,
        "max": _larger,
        "min": _smaller,
        "any": lambda a, b: a | b,
        "all": lambda a, b: a & b,
    }
    return steps[op]


def nothing(op: str, dtype: np.dtype) -> Number:
    """What a missing element counts as."""
    value = np.asarray(identity(op, dtype), dtype)[()]
    return (value, np.int64(2**63 - 1)) if op in ("argmin", "argmax") else value


def block(op: str, numbers: list[Number], lanes: int, dtype: np.dtype) -> Number:
    """At most 1024 numbers: each lane takes every `lanes`-th in order, then halves are added to halves."""
    step = step_of(op)
    per_lane: list[Number] = []
    for lane in range(lanes):
        mine = [
            numbers[i] if i < len(numbers) else nothing(op, dtype) for i in range(lane, max(len(numbers), lanes), lanes)
        ]
        longest = max(1, -(-len(numbers) // lanes))
        mine += [nothing(op, dtype)] * (longest - len(mine))
        total = mine[0]
        for number in mine[1:]:
            total = step(total, number)
        per_lane.append(total)
    while len(per_lane) > 1:
        half = len(per_lane) // 2
        per_lane = [step(per_lane[i], per_lane[i + half]) for i in range(half)]
    return per_lane[0]


def tree(op: str, blocks: list[Number], dtype: np.dtype) -> Number:
    """Blocks by pairs (0, 1), (2, 3), ..., then pairs of pairs; float32 in float64."""
    wide = np.dtype(np.float64) if dtype == np.float32 else dtype

    def widened(number: Number) -> Number:
        return (wide.type(number[0]), number[1]) if isinstance(number, tuple) else wide.type(number)

    level = [widened(number) for number in blocks]
    step = step_of(op)
    while len(level) > 1:
        pairs = [step(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = pairs + ([level[-1]] if len(level) % 2 else [])
    return level[0]


def lanes_of(length: int) -> int:
    """Half the next power of two, from 1 to 256."""
    power = 1
    while power < length:
        power *= 2
    return min(256, max(1, power // 2))


def row(op: str, numbers: np.ndarray) -> Number:
    """A row of an item."""
    listed = _listed(op, numbers)
    if len(listed) <= 1024:
        return block(op, listed, lanes_of(len(listed)), numbers.dtype)
    blocks = [block(op, listed[start : start + 1024], 256, numbers.dtype) for start in range(0, len(listed), 1024)]
    return tree(op, blocks, numbers.dtype)


def stream_of_numbers(op: str, numbers: np.ndarray) -> Number:
    """A fold over records of one number: always in whole blocks of 256 lanes."""
    listed = _listed(op, numbers)
    blocks = [block(op, listed[start : start + 1024], 256, numbers.dtype) for start in range(0, len(listed), 1024)]
    return tree(op, blocks, numbers.dtype)


def column(op: str, numbers: np.ndarray, records: int) -> Number:
    """One column of a fold over wider items: in order inside blocks of `records`."""
    listed = _listed(op, numbers)
    step = step_of(op)
    blocks = []
    for start in range(0, len(listed), records):
        total = listed[start]
        for number in listed[start + 1 : start + records]:
            total = step(total, number)
        blocks.append(total)
    return tree(op, blocks, numbers.dtype)


def _listed(op: str, numbers: np.ndarray) -> list[Number]:
    listed = list(numbers)
    return [(number, np.int64(i)) for i, number in enumerate(listed)] if op in ("argmin", "argmax") else listed
