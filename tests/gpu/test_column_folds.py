"""Folds of many columns over few records, in code for GPUs: work-groups share the columns of a block."""

from __future__ import annotations

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.ir import FoldSpec
from flowcompute.ir.launches import LaunchTask, divide
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu

X = np.random.default_rng(5).standard_normal((5, 70, 90), dtype=np.float32)


def test_each_tile_of_columns_has_a_group() -> None:
    total = fc.sum(fc.source(X) * 2, axis=0)
    (kernel,) = (one.ir for one in plan_for_gpu(total).kernels)
    assert kernel.work == "columns"
    (fold,) = {one.value for one in kernel.arguments if one.kind == "partial"}
    spec = FoldSpec("sum", X.dtype, X.shape[1:], X.dtype, X.shape[1:], selected=False)

    def groups(blocks: int) -> int:
        capabilities = gpu_shaped().device.capabilities
        task = LaunchTask(kernel, capabilities, len(X), blocks, {fold: spec}, lambda: spec.numbers)
        return divide(task).groups

    assert groups(1) > 1
    assert groups(1) == min(-(-spec.numbers // kernel.work_group), groups(1000))


@pytest.mark.compiles
@pytest.mark.parametrize("records", [1, 5])
def test_sums_are_those_of_numpy(records: int) -> None:
    """Records are whole numbers, whose sums are exact in any order."""
    x = np.round(X[:records] * 8)
    (got,) = resolve_on_gpu(fc.sum(fc.source(x) * 2, axis=0))
    assert np.array_equal(got, (x * 2).sum(axis=0))


def test_columns_of_reduced_rows_have_a_kernel_of_their_own() -> None:
    """A work-group of one kernel would take the records of a block one by one, with few columns for it."""
    rows = fc.nn.softmax(fc.source(X[:, 0]), axis=-1)
    together, apart = fc.plan(rows.sum(axis=0), device="cpu"), plan_for_gpu(rows.sum(axis=0))
    assert (len(together.kernels), len(apart.kernels)) == (1, 2)
    assert [one.text for one in apart.reasons if one.kind == "cut"] == ["a GPU folds columns in a kernel of their own"]
    beside = plan_for_gpu(fc.source(X[:, 0]).sum(axis=0), fc.source(X[:, 0]).max(axis=1))
    assert len(beside.kernels) == 2
