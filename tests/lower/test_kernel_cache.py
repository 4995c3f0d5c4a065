"""Equal regions are lowered once, and what their kernels read is their own."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu import rendered_programs
from flowcompute.gpu.render import render
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.lower import kernel_cache
from flowcompute.lower.forms import lower
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import CPU, GPU, GRAPHS
from tests.gpu.tensor_devices import plan_on_paper

WIDTH = 16
NUMBERS = (0.0, -0.0, 1.0, 2.0, 3.0, 5.0)


def layers(count: int, x: fc.Element) -> fc.Element:
    rng = np.random.default_rng(0)
    for _ in range(count):
        one, other = (fc.constant(rng.standard_normal((WIDTH, WIDTH), np.float32)) for _ in range(2))
        scale = fc.constant(rng.standard_normal(WIDTH, np.float32))
        n = fc.nn.rms_norm(x, weight=scale)
        x = x + fc.nn.silu(n @ one) * (n @ other)
    return x


def lowered(count: int) -> int:
    """Return how many regions are lowered for so many layers."""
    PLANS.clear()
    KERNELS.clear()
    x = fc.source(np.ones((3, WIDTH), np.float32))
    with mock.patch.object(kernel_cache, "lower", wraps=lower) as lowering:
        assert len(layers(count, x).plan(device="cpu").kernels) > count
    return lowering.call_count


def test_more_layers_are_lowered_no_more_often() -> None:
    assert lowered(8) == lowered(3)


@pytest.mark.compiles
def test_each_layer_reads_its_own_weights() -> None:
    data = np.random.default_rng(1).standard_normal((5, WIDTH), np.float32)
    made = [layers(4, fc.source(data)).resolve(device=device, progress=False) for device in ("cpu", "numpy")]
    np.testing.assert_allclose(*made, rtol=1e-4, atol=1e-4)


def test_kernels_with_one_body_have_one_text() -> None:
    plan = layers(4, fc.source(np.ones((3, WIDTH), np.float32))).plan(device="cpu")
    bodies = {id(kernel.ir.body): program_of(kernel.ir)[0] for kernel in plan.kernels}
    assert len(bodies) < len(plan.kernels)
    for kernel in plan.kernels:
        text, name = program_of(kernel.ir)
        assert text is bodies[id(kernel.ir.body)]
        assert text.replace(f" {name}(", f" {kernel.ir.name}(") == render(kernel.ir)


def test_texts_of_kernels_that_are_gone_are_those_of_no_other() -> None:
    """An interrupt while Python forgot a kernel left its text, which the next one at its address got."""
    kernel = (fc.source(np.ones(3, np.float32)) + 1).plan(device="cpu").kernels[0].ir
    of_another, gone = replace(kernel), replace(kernel)
    with mock.patch.object(rendered_programs, "_forget"):
        rendered_programs._note(gone, ("another text", "another"))
        left = rendered_programs._PROGRAMS.pop(id(gone))
        del gone
    assert left[0]() is None
    with mock.patch.dict(rendered_programs._PROGRAMS, {id(of_another): left}):
        assert rendered_programs.RenderedTexts().known(of_another) is None
        assert program_of(of_another) == program_of(kernel)


@pytest.mark.parametrize("capabilities", [CPU, GPU], ids=["cpu", "gpu"])
def test_kernels_do_not_depend_on_the_rest_of_the_graph(capabilities: object) -> None:
    for make, _ in GRAPHS.values():
        plan = plan_on_paper(*make(), capabilities=capabilities)
        for step in (*plan.passes[0].before, *plan.steps):
            if isinstance(step, RegionStep) and step.kernel is not None:
                style = KernelStyle(plan.backend.capabilities, plan.strategy.of_kernel(step.kernel.name))
                whole = lower(plan.graph, step.region, style, dict(plan.folds), step.kernel.name)
                assert whole.arguments == step.kernel.arguments
                assert render(whole) == render(step.kernel)


def test_numbers_in_kernels_are_told_apart() -> None:
    def text(number: float) -> str:
        PLANS.clear()
        x = fc.source(np.ones(3, np.float32))
        (kernel,) = (x * fc.constant(np.float32(number))).plan(device="cpu").kernels
        return kernel.source

    alone = []
    for number in NUMBERS:
        KERNELS.clear()
        alone.append(text(number))
    assert len({*alone}) > 2
    assert [text(number) for number in NUMBERS] == alone
