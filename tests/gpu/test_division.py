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
