"""Scans of items along the stream on GPUs: tiles of few records, and look-backs over several columns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.ir.scan_order import scan_tile
from tests.golden.test_golden import NVIDIA
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu
from tests.gpu.tensor_devices import plan_on_paper
from tests.gpu.test_scan import drawn, on_gpu_that_looks_back


@pytest.mark.compiles
@pytest.mark.parametrize(("dtype", "width"), [("float64", 1500), ("int8", 257), ("float32", 20000)])
def test_tiles_of_few_records(dtype: str, width: int) -> None:
    """Work-items with several tiles, of which batches have some; items that CPUs leave to NumPy; words for stretches."""
    data = drawn(dtype, (9 * (16384 // width + 1) * 8 + 5, width), special=dtype == "float32")
    scan = fc.cumulative_sum(fc.source(data), axis=0)
    wanted = np.asarray(fc.resolve(scan, device="numpy", progress=False))
    tile = scan_tile(width)
    for records in (1, tile * 8, tile * 8 + 1, len(data)):
        length = min(len(data), 20 * records)
        part = fc.cumulative_sum(fc.source(data[:length]), axis=0)
        strategy = fc.Strategy(joined_batches=1, batch_bytes=data[0].nbytes * records, work_group=128, tile_columns=32)
        assert [kernel.ir.family for kernel in plan_for_gpu(part, strategy=strategy).kernels] == ["column scan"]
        (got,) = resolve_on_gpu(part, fc.constant(0), strategy=strategy)[:1]
        assert got.tobytes() == wanted[:length].tobytes(), f"{records} records at a time"


@pytest.mark.parametrize(
    ("dtype", "width", "sizes"),
    [
        ("float32", 512, (512, 32)),
        ("float32", 1024, (256, 32)),
        ("float32", 2048, (256, 32)),
        ("float64", 256, (256, 16)),
        ("float64", 2048, (512, 16)),
        ("float64", 4096, (128, 16)),
        ("int64", 2048, (256, 16)),
    ],
)
def test_panels_and_work_groups(dtype: str, width: int, sizes: tuple[int, int]) -> None:
    data = np.broadcast_to(np.zeros(1, dtype), (100, width))
    large = dataclasses.replace(NVIDIA, max_work_group=1024)
    (kernel,) = plan_on_paper(fc.cumulative_sum(fc.source(data), axis=0), capabilities=large).kernels
    assert (kernel.ir.knobs.work_group, kernel.ir.knobs.tile_columns) == sizes


@pytest.mark.parametrize(("width", "loads"), [(64, 0), (128, 64), (4097, 24)])
def test_numbers_of_the_next_task_are_loaded_behind_stores(width: int, loads: int) -> None:
    """Rows of a panel need 64 bytes for it."""
    large = dataclasses.replace(NVIDIA, max_work_group=1024)
    scan = fc.cumulative_sum(fc.source(np.zeros((100, width), "f4")), axis=0)
    (kernel,) = plan_on_paper(scan, capabilities=large).kernels
    assert kernel.source.count("= in0[ahead") == loads


@pytest.mark.parametrize(("width", "shifted"), [(128, 64), (512, 64), (1024, 0)])
def test_numbers_become_float64_without_a_conversion_where_a_work_group_fills_a_unit(width: int, shifted: int) -> None:
    large = dataclasses.replace(NVIDIA, max_work_group=1024)
    scan = fc.cumulative_sum(fc.source(np.zeros((100, width), "f4")), axis=0)
    (kernel,) = plan_on_paper(scan, capabilities=large).kernels
    assert kernel.source.count("* 0x20000000L") == shifted


@pytest.mark.parametrize(("width", "early"), [(128, True), (256, False)])
def test_totals_of_few_tiles_are_read_before_the_wait(width: int, early: bool) -> None:
    """Totals of 16 tiles are; those of 32 would take registers that numbers need."""
    large = dataclasses.replace(NVIDIA, max_work_group=1024)
    scan = fc.cumulative_sum(fc.source(np.zeros((100, width), "f4")), axis=0)
    (kernel,) = plan_on_paper(scan, capabilities=large).kernels
    before, _ = kernel.source.split("fc_await(words0")
    assert ("= totals[240 + column];" in before) == early


@pytest.mark.compiles
@pytest.mark.parametrize("width", [128, 256])
@pytest.mark.parametrize("exclusive", [False, True])
def test_sums_beyond_the_finite_numbers(width: int, exclusive: bool) -> None:
    """Infinities, NaN, and sums that overflow in a run or only behind several, beside denormal numbers and -0."""
    data = drawn("float32", (4500, width))
    data[:, 0] = np.arange(4500) * np.float32(1e-45)
    data[:, 1] = -0.0
    data[70, 2], data[200, 3], data[63, 8] = np.inf, np.nan, np.inf
    data[128:192, 4], data[192:256, 4] = 3e38, -3e38
    data[[0, 64], 5], data[[300, 301], 5] = 2e38, -2e38
    data[70, 6], data[700, 6] = np.inf, -np.inf
    data[:, 7] *= np.float32(1e-38)
    scan = fc.cumulative_sum(fc.source(data), axis=0, exclusive=exclusive)
    (kernel,) = plan_for_gpu(scan).kernels
    assert "* 0x20000000L" in kernel.source
    wanted = np.asarray(fc.resolve(scan, device="numpy", progress=False))
    (got,) = resolve_on_gpu(scan, fc.constant(0))[:1]
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("dtype", "width", "group"), [("float64", 2048, 256), ("float32", 2048, 128)])
def test_work_groups_fit_a_small_local_memory(dtype: str, width: int, group: int) -> None:
    data = np.broadcast_to(np.zeros(1, dtype), (100, width))
    small = dataclasses.replace(NVIDIA, max_work_group=1024, local_bytes=32 << 10)
    (kernel,) = plan_on_paper(fc.cumulative_sum(fc.source(data), axis=0), capabilities=small).kernels
    assert (kernel.ir.form, kernel.ir.knobs.work_group) == ("column scan", group)


def test_columns_of_all_runs_have_a_work_item() -> None:
    """258 of three columns, where a device takes as many. Numbers are loaded several at a time even so."""
    scan = fc.cumulative_sum(fc.source(np.zeros((100, 3), "f4")), axis=0)
    for most, strategy, group in ((1024, None, 288), (256, None, 256), (1024, fc.Strategy(work_group=256), 256)):
        device = dataclasses.replace(NVIDIA, max_work_group=most)
        (kernel,) = plan_on_paper(scan, capabilities=device, strategy=strategy).kernels
        assert kernel.ir.work_group == group
        assert kernel.source.count("= in0[") > 16


@pytest.mark.parametrize(("width", "loads", "stores"), [(4, 4, 4), (32, 4, 4), (12, 0, 0), (3, 0, 0)])
def test_items_of_whole_vectors_are_loaded_and_stored_as_vectors(width: int, loads: int, stores: int) -> None:
    scan = fc.cumulative_sum(fc.source(np.zeros((100, width), "f4")), axis=0)
    (kernel,) = plan_on_paper(scan).kernels
    assert kernel.source.count("*(const __global float4 *)(in0") == loads
    assert kernel.source.count("*(__global float4 *)(out0") == stores


def test_vectors_of_views_lie_anywhere() -> None:
    """Their records begin at any number."""
    data = drawn("float32", (2 * scan_tile(16) + 5, 19))
    scan = fc.cumulative_sum(fc.source(data)[:, 1:17] * np.arange(16, dtype="f4"), axis=0)
    (kernel,) = plan_on_paper(scan).kernels
    assert "*(const __global float4 *)(in0" not in kernel.source
    assert "*(__global float4 *)(out0" in kernel.source
    wanted = np.asarray(fc.resolve(scan, device="numpy", progress=False))
    (made,) = resolve_on_gpu(scan)
    assert made.tobytes() == wanted.tobytes()


def test_tiles_of_several_runs_are_loaded_ahead() -> None:
    """The next task's numbers are those that follow, whichever run of a tile they belong to."""
    data = drawn("float32", (12 * scan_tile(130) + 5, 130))
    scan = fc.cumulative_sum(fc.source(data), axis=0)
    wanted = np.asarray(fc.resolve(scan, device="numpy", progress=False))
    (made,) = resolve_on_gpu(scan, strategy=fc.Strategy(joined_batches=1, work_group=128, tile_columns=16))
    assert made.tobytes() == wanted.tobytes()


@pytest.mark.compiles
@pytest.mark.parametrize(("width", "tiles"), [(3, 60), (40, 7), (16, 3)])
def test_columns_by_work_groups_that_look_back(width: int, tiles: int) -> None:
    """More tiles than a window has, and several words of a window for a work-item."""
    data = drawn("float32", (tiles * scan_tile(width) + 100, width), special=width == 40)
    scan = fc.cumulative_sum(fc.source(data), axis=0)
    wanted = np.asarray(fc.resolve(scan, device="numpy", progress=False))
    for records in (1000, 1 << 20) if width > 3 else (1 << 20,):
        strategy = fc.Strategy(joined_batches=1, batch_bytes=data[0].nbytes * records)
        assert on_gpu_that_looks_back(scan, strategy, "scan").tobytes() == wanted.tobytes()
