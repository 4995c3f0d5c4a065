"""What a tile finds before it, when the tiles before it have handed on some sums and some ends."""

from __future__ import annotations

import time

import numpy as np
import pytest

from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.render.renderer import render
from flowcompute.ir.index_nodes import FIRST, LID, equal
from flowcompute.ir.kernel import Kernel
from flowcompute.ir.nodes import Argument, Array, If, Integer, Let, PutItem, Store, Var, WorkGroupBarrier
from flowcompute.ir.scan_nodes import LookBehind
from flowcompute.spec import FLOAT64, INT32
from tests.gpu.shapes import gpu_shaped

pytestmark = pytest.mark.compiles

WINDOW, GROUP, LAUNCH = 32, 64, 7


@pytest.fixture(scope="module")
def look_behind() -> cl.Kernel:
    """A kernel whose work-items store what comes before tile number `first`."""
    out, state, words = (
        Argument(name, kind, FLOAT64, 0)
        for name, kind in (("out0", "output"), ("state0", "state"), ("words0", "words"))
    )
    none, found = Var("none", INT32, 1), Var("found", FLOAT64, 1)
    body = (
        Array("ahead", FLOAT64, 1, WINDOW, local=True),
        Array("nearest", INT32, 1, 1, local=True),
        If(equal(LID, 0), (Let(none, Integer(WINDOW)), PutItem("nearest", 0, none))),
        WorkGroupBarrier(),
        LookBehind(found, words, state, FIRST, WINDOW, "sum"),
        Store(out, LID, found),
    )
    text = render(Kernel("k0", "a scan", (out, state, words), body, work="scan", work_group=GROUP))
    return cl.Kernel(cl.Program(gpu_shaped().device.context, text).build(["-cl-opt-disable"]), "k0")


def handed_on(numbers: np.ndarray, end: int) -> np.ndarray:
    """Words of tiles: ends up to that tile, sums behind it."""
    bits, flags = numbers.view("u8"), (np.arange(len(numbers)) <= end) | np.uint64(LAUNCH << 1)
    words = np.zeros(2 + 2 * len(numbers), "u8")
    words[2::2], words[3::2] = bits << np.uint64(32) | flags, bits & np.uint64(0xFFFFFFFF << 32) | flags
    return words


@pytest.mark.parametrize(("tile", "end"), [(0, -1), (1, 0), (5, 0), (5, 3), (40, 39), (40, 19), (40, 16), (40, 8)])
def test_what_follows_the_nearest_end_is_added_in_order(look_behind: cl.Kernel, tile: int, end: int) -> None:
    """`end`: the last tile whose end is known; -1 is the batch's beginning, which the state knows.

    Behind the first tile the state may be that of the next batch already.
    """
    rng = np.random.default_rng(tile)
    sums, ends = (rng.standard_normal((2, tile + 1)) * 2.0 ** rng.integers(-40, 40, (2, tile + 1))).astype("f8")
    expected = begun = np.float64(0.1 if tile == 0 else np.nan)
    if end >= 0:
        expected = ends[end]
    for i in range(end + 1, tile):
        expected = expected + sums[i]
    words = handed_on(np.where(np.arange(tile + 1) <= end, ends, sums), end)
    device, flags_ = gpu_shaped().device, cl.mem_flags
    arrays = np.empty(GROUP), np.array([begun]), words
    buffers = [cl.Buffer(device.context, flags_.READ_WRITE | flags_.COPY_HOST_PTR, hostbuf=one) for one in arrays]
    integers = (np.int64(value) for value in (0, LAUNCH, tile + 1, tile, 0))
    look_behind(device.queue, (GROUP,), (GROUP,), *buffers, *integers)
    cl.enqueue_copy(device.queue, arrays[0], buffers[0])
    assert set(arrays[0].tolist()) == {float(expected)}


def test_a_tile_waits_for_the_end_of_the_first_one(look_behind: cl.Kernel) -> None:
    """The last tile of a batch writes the state of the next one, while others may still look for what comes first."""
    words, out, overwritten = handed_on(np.array([1.0, 2.0, 4.0, 8.0]), -1), np.empty(GROUP), np.array([np.nan])
    device, flags = gpu_shaped().device, cl.mem_flags
    buffers = [
        cl.Buffer(device.context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=one)
        for one in (out, overwritten, words)
    ]
    integers = (np.int64(value) for value in (0, LAUNCH, 4, 3, 0))
    look_behind(device.queue, (GROUP,), (GROUP,), *buffers, *integers)
    device.queue.flush()
    time.sleep(0.05)
    words[2:4] = handed_on(np.array([16.0]), 0)[2:]
    cl.enqueue_copy(device.queue, out, buffers[0])
    assert set(out.tolist()) == {16.0 + 2.0 + 4.0}
