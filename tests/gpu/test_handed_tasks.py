"""Tasks that work-groups hand over: each is done once, in order, whatever their number and that of the groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.render.renderer import render
from flowcompute.ir import (
    LID,
    Argument,
    Assign,
    ConstantValue,
    For,
    HandOver,
    If,
    Integer,
    Kernel,
    MultiplyAdd,
    N,
    Name,
    Splat,
    Store,
    TakeOver,
    WorkGroupBarrier,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.handed_tasks import PLACE, SharedTasks
from flowcompute.spec import FLOAT32, UINT64
from tests.gpu.shapes import gpu_shaped

pytestmark = pytest.mark.compiles

STEPS, GROUP, LANES = 5, 16, 2
TASK, STEP = Name("task"), Name("step")


@pytest.fixture(scope="module")
def halved_sums() -> cl.Kernel:
    """A kernel whose tasks begin with 1, and halve and add their number and that of the step, for each work-item."""
    out, words = Argument("out0", "output", FLOAT32, 0), Argument("words0", "words", UINT64)
    room = Argument("room0", "room", FLOAT32)
    names = itertools.count()
    scope = Scope(names, lanes=1)
    one, pair = scope.let(ConstantValue(1.0), FLOAT32, 1), scope.let(ConstantValue(1.0), FLOAT32, LANES)
    shared = SharedTasks(words, N, STEPS)
    part = shared.part(scope)
    scope.add(If(part.first > 0, (TakeOver(room, words, PLACE + 1, (one, pair), GROUP),)))
    body = scope.inner()
    number = body.let(Integer(TASK * STEPS + STEP + LID), FLOAT32, 1)
    half = body.let(ConstantValue(0.5), FLOAT32, 1)
    body.add(Assign(one, MultiplyAdd(one, half, number)), Assign(pair, Splat(one)))
    scope.add(For(STEP, part.first, part.stop, 1, tuple(body.statements)))
    store = scope.inner()
    store.add(Store(out, (TASK * GROUP + LID) * LANES, pair))
    hand = HandOver(room, words, PLACE, (one, pair), GROUP)
    scope.add(If(part.left > 0, (hand,), tuple(store.statements)))
    loop = (*shared.draw(names, 0), WorkGroupBarrier(), *shared.open(), shared.loop(TASK, scope.statements))
    text = render(Kernel("k0", "tasks", (out, words, room), loop, work="matmul", work_group=GROUP))
    return cl.Kernel(cl.Program(gpu_shaped().device.context, text).build(["-cl-opt-disable"]), "k0")


def expected(tasks: int) -> np.ndarray:
    """Return what each work-item has at the end of each task."""
    made = np.ones((tasks, GROUP), "f4")
    for step in range(STEPS):
        made = made * np.float32(0.5) + (np.arange(tasks)[:, None] * STEPS + step + np.arange(GROUP)).astype("f4")
    return made


@pytest.mark.parametrize(("tasks", "groups"), [(1, 1), (2, 3), (3, 2), (7, 4), (8, 5), (12, 4), (13, 12)])
def test_tasks_are_done_in_order(halved_sums: cl.Kernel, tasks: int, groups: int) -> None:
    """Twice, since words must be as at the begin when a launch has ended."""
    device, flags = gpu_shaped().device, cl.mem_flags
    out, words = np.zeros((tasks, GROUP, LANES), "f4"), np.zeros(1 + groups, "u8")
    room = np.full((groups, 3 * GROUP), np.nan, "f4")
    usage, arrays = flags.READ_WRITE | flags.COPY_HOST_PTR, (out, words, room)
    buffers = [cl.Buffer(device.context, usage, hostbuf=one) for one in arrays]
    for _ in range(2):
        cl.enqueue_fill_buffer(device.queue, buffers[0], np.float32(0), 0, out.nbytes)
        halved_sums(device.queue, (groups * GROUP,), (GROUP,), *buffers, *(np.int64(i) for i in (tasks, 0, 0, 0, 0)))
        for array, buffer in zip(arrays, buffers, strict=True):
            cl.enqueue_copy(device.queue, array, buffer)
        assert np.array_equal(out, np.repeat(expected(tasks)[..., None], LANES, axis=2))
        assert not words.any()
    handed, busy = ~np.isnan(room).any(axis=1), min(tasks, groups)
    assert handed.sum() == sum(tasks * STEPS * place // busy % STEPS > 0 for place in range(1, busy))
