"""Attention of one record along the stream: emulated, with copies that arrive late, and on a GPU where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.nn.self_attention import _attend
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.ir import Kernel
from flowcompute.schedule.steps import RegionStep
from tests.gpu.emulator import emulate
from tests.gpu.tensor_devices import compiles_without_assembly, plan_on_paper, real_device
from tests.gpu.test_self_attention import Arrays, drawn, positions
from tests.support.slow import slow_but

# Heads, those of keys, numbers of a key and of a value, records, window, and lengths of texts: a tile and a part of the
# next one, with its first key alone; no heads that share; windows that begin inside of tiles; several texts.
SHAPES = [
    (4, 2, 16, 32, 66, None, None),
    (2, 2, 8, 128, 130, 70, None),
    (3, 1, 64, 16, 75, 5, [1, 5, 69]),
]


def kernels(
    arrays: Arrays, window: int | None, texts: list[int] | None
) -> tuple[Kernel, Kernel, dict[int, np.ndarray]]:
    """The kernels of all records and of one, with what they read, and an empty state."""
    q, k, v = arrays
    at = positions(texts or [len(q)])
    extra = [] if texts is None else [fc.source(at)]
    made = _attend(*map(fc.source, arrays), *extra, window=window, context=None, scale=None)
    plan = plan_on_paper(made)
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    assert step.kernel is not None
    nodes, given = plan.graph.nodes, {}
    for one in step.kernel.arguments:
        if one.kind == "state":
            # What is not seen is NaN, so whoever adds it spoils the result.
            given[-1 - one.part] = np.full((len(q) + 64, *(k, v)[one.part].shape[1:]), np.nan, one.dtype)
        elif one.kind == "output":
            given[one.value] = np.zeros((len(q), *nodes[one.value].spec.shape), one.dtype)
        else:
            given[one.value] = nodes[one.value].element.array
    return step.kernel, step.kernel.of_items(1), given


def launch(kernel: Kernel, arrays: dict[int, np.ndarray], n: int, groups: int, **integers: int) -> list[np.ndarray]:
    """The results of a launch. Positions are numbers of an array, which indices depend on."""
    positions = {one.name: arrays[one.value] for one in kernel.arguments if one.dtype.kind == "i"}
    return [*emulate(kernel, arrays, n, groups, **integers, **positions).values()]


@pytest.mark.parametrize("shape", slow_but(SHAPES[:1], SHAPES))
def test_one_record_has_the_bits_of_all_at_once(shape: tuple[Any, ...]) -> None:
    heads, kv_heads, size, width, records, window, texts = shape
    arrays = drawn(records, heads, kv_heads, size, width)
    all_at_once, alone, given = kernels(arrays, window, texts)
    state = {key: array.copy() for key, array in given.items() if key < 0}
    for phase in range(all_at_once.stages):
        (whole,) = launch(all_at_once, given | state, records, 2, phase=phase, chunk=0)
    inputs = [one.value for one in alone.arguments if one.kind == "input"]
    for record, place in enumerate(positions(texts or [records])):
        # The first ones of a text, those round the ends of tiles of keys, and the last ones are computed. Others find
        # what each would have left behind.
        if place >= 8 and place % 32 not in (0, 1, 15, 16, 31) and record < records - 3:
            for part in (-1, -2):
                given[part][record] = arrays[-part][record]
            continue
        own = {key: array[record : record + 1] if key in inputs else array for key, array in given.items()}
        (made,) = launch(alone, own, 1, heads, first=record, chunk=record, phase=alone.stages)
        expected = whole.reshape(records, heads, width)[record]
        assert made[: heads * width].tobytes() == expected.tobytes(), record
    for part in (-1, -2):
        assert given[part][:records].tobytes() == arrays[-part].tobytes()


def test_its_text_is_short_and_compiles() -> None:
    _, alone, _ = kernels(drawn(3, 32, 8, 128, 128), None, None)
    text, _ = program_of(alone)
    assert text.count("fc_copy_16(") - 1 == 4
    assert compiles_without_assembly(text)


@pytest.mark.parametrize(
    ("size", "width", "dtype"), [(100, 128, "f4"), (128, 30, "f4"), (256, 256, "f4"), (128, 128, "f8")]
)
def test_other_shapes_have_the_kernel_of_few_records(size: int, width: int, dtype: str) -> None:
    _, alone, _ = kernels(drawn(3, 4, 2, size, width, np.dtype(dtype)), None, None)
    assert alone.units != 4 or alone.at_once != 1


def test_a_gpu_has_the_bits_of_all_at_once() -> None:
    device = real_device()
    arrays = drawn(140, 8, 2, 128, 128)
    names = ("q", "k", "v")
    feeds = [fc.feed(one.shape[1:], "float32", name=name) for name, one in zip(names, arrays, strict=True)]
    made = fc.nn.self_attention(*feeds, context=200)

    def results(step: int) -> np.ndarray:
        with made.flow(device=device) as flow:
            rows = []
            for begin in range(0, 140, step):
                flow.send(**{name: one[begin : begin + step] for name, one in zip(names, arrays, strict=True)})
                rows.append(np.array(flow.receive()))
        return np.concatenate(rows)

    assert results(1).tobytes() == results(140).tobytes()
