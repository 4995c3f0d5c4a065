"""How the work of a launch is divided."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu.run.work_division import division
from tests.gpu.shapes import plan_for_gpu


@pytest.mark.parametrize("make", [plan_for_gpu, partial(fc.plan, device="cpu")])
@pytest.mark.parametrize("fold", [lambda x: x.sum(), lambda x: fc.cut(x, 8).sum(axis=0)])
def test_folds_are_split_into_as_many_parts_as_wanted(make, fold):
    x = fc.source(np.ones((1 << 22,), "f4"))
    groups = {}
    for parts in (8, 32):
        plan = make(fold(x), strategy=fc.Strategy(fold_parts=parts))
        (kernel,), capabilities = plan.passes[0].kernels, plan.backend.capabilities
        assert kernel.knobs.fold_parts == parts
        groups[parts] = division(plan, capabilities, kernel, 1 << 22, 1 << 12)[2]
        assert groups[parts] <= parts * capabilities.units
    assert groups[32] > groups[8]


def test_each_vector_of_a_map_has_a_work_item():
    x = fc.source(np.ones((1 << 22,), "f4"))
    plan = plan_for_gpu(x * 2)
    (kernel,), capabilities = plan.passes[0].kernels, plan.backend.capabilities
    assert kernel.form == "map"
    for numbers in (1, 1 << 10, 1 << 22, (1 << 28) + 1):
        groups = division(plan, capabilities, kernel, numbers, numbers)[2]
        assert groups == -(-numbers // (kernel.work_group * kernel.lanes))
