"""Knobs of kernels: for random programs every strategy gives the bits of the default, and is what kernels were made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.lower.forms import candidates
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.strategy.knobs import KERNEL_KNOBS
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu
from tests.properties.cases import cases
from tests.properties.checks import check_same_bits, resolve
from tests.properties.programs import Program, programs

KNOBS = st.fixed_dictionaries(
    {},
    optional={
        "vector_width": st.sampled_from([2, 4, 8, 16]),
        "unroll": st.sampled_from([1, 2, 4, 8, 16]),
        "work_group": st.sampled_from([32, 64, 128, 256, 512, 1024]),
        "items_per_work_item": st.sampled_from([1, 4, 100, 4096]),
        "fold_parts": st.sampled_from([1, 4, 8, 64, 128]),
        "tile_rows": st.sampled_from([2, 4, 8, 16, 32, 128]),
        "tile_columns": st.sampled_from([8, 16, 32, 128]),
        "block_rows": st.sampled_from([16, 32, 64, 128]),
        "team_blocks": st.sampled_from([1, 2]),
    },
)
STRATEGIES = st.builds(
    lambda knobs, first, batch_bytes: fc.Strategy(**knobs, kernels={"k0": first}, batch_bytes=batch_bytes),
    KNOBS,
    KNOBS,
    st.sampled_from([None, 64, 5000]),
)


ANCHORS = ("attention", "numbers", "columns", "items", "recurrence", "states", "stream attention")
LARGEST = {("matmul", 128), ("attention", 128)}
"""Tiles for which there is no room on GPUs when numbers are wide."""


@st.composite
def anchored(draw: st.DrawFn) -> fc.Element:
    """Attention or a scan, with something before and after it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="data"))
    dtype = draw(st.sampled_from(["f4", "f4", "f8", "f2"]), label="dtype")
    form = draw(st.sampled_from(ANCHORS), label="form")
    length = draw(st.sampled_from([1, 63, 700]), label="length")

    def stream(*shape: int) -> fc.Element:
        return fc.source(rng.standard_normal(shape).astype(dtype)) * 0.5

    if form == "attention":
        queries, keys = draw(st.integers(1, 150), label="queries"), draw(st.sampled_from([1, 64, 131]), label="keys")
        size, columns = draw(st.integers(1, 20), label="size"), draw(st.sampled_from([3, 16, 40]), label="columns")
        causal = draw(st.booleans(), label="causal")
        window = draw(st.sampled_from([None, 9, 90]), label="window") if causal else None
        q, k, v = stream(2, 2, queries, size), stream(2, 1, keys, size), stream(2, 1, keys, columns)
        return fc.nn.attention(q, k, v, causal=causal, window=window) + 1
    columns = draw(st.sampled_from([1, 3, 20]), label="columns")
    x = stream(length * 50) if form == "numbers" else stream(length * 5, columns)
    if form == "items":
        return fc.cumulative_sum(stream(length, 70, columns), axis=1) * 3
    if form == "states":
        u, n = stream(3, length, columns), draw(st.integers(1, 4), label="states")
        return fc.nn.selective_scan(
            u, fc.abs(u), -np.ones((columns, n), dtype), stream(3, length, n), stream(3, length, n)
        )
    if form == "stream attention":
        window = draw(st.sampled_from([None, 9, 90]), label="window")
        return fc.nn.self_attention(
            stream(length, 4, 20), stream(length, 2, 20), stream(length, 2, columns), window=window
        )
    if form == "recurrence":
        return fc.linear_recurrence(x, x + 1, axis=0) / 3
    return fc.cumulative_sum(x, axis=0, exclusive=draw(st.booleans(), label="exclusive")) / 3


def check_applied(plan: Plan, strategy: fc.Strategy) -> None:
    """Each kernel has all knobs of its family, as wanted where it can do that; the plan says what was not applied."""
    said = {reason.element for reason in plan.reasons if "not applied" in reason.text}
    applied = set()
    for kernel in (plan_kernel.ir for plan_kernel in plan.kernels):
        values = candidates(kernel, plan.backend.capabilities)
        assert set(kernel.knobs.plain()) == set(values)
        wanted = strategy.of_kernel(kernel.name)
        for knob, value in kernel.knobs.plain().items():
            asked = getattr(wanted, knob)
            # Vectors hold as many of the widest numbers as fit.
            may_be_less = knob == "vector_width" and asked is not None and asked > plan.backend.capabilities.lanes_of(8)
            if asked in values[knob] and (kernel.family, asked) not in LARGEST and not may_be_less:
                assert value == asked
            if value == getattr(strategy, knob):
                applied.add(knob)
    for knob in KERNEL_KNOBS:
        assert (knob in said) == (getattr(strategy, knob) is not None and knob not in applied)


@cases(6)
@given(programs(steps=5), STRATEGIES)
def test_knobs_of_cpus_change_no_bit(program: Program, strategy: fc.Strategy) -> None:
    plan = fc.plan(*(root.element for root in program.roots), device="cpu", strategy=strategy)
    check_applied(plan, strategy)
    check_same_bits(program, resolve(program, device="cpu", strategy=strategy), resolve(program, device="cpu"))


@cases(5)
@given(programs(steps=5), STRATEGIES)
def test_knobs_of_gpus_change_no_bit(program: Program, strategy: fc.Strategy) -> None:
    elements = [root.element for root in program.roots]
    check_applied(plan_for_gpu(*elements, strategy=strategy), strategy)
    check_same_bits(program, resolve_on_gpu(*elements, strategy=strategy), resolve_on_gpu(*elements))


@cases(3)
@given(anchored(), STRATEGIES)
def test_knobs_of_scans_and_attention_change_no_bit(root: fc.Element, strategy: fc.Strategy) -> None:
    plan = fc.plan(root, device="cpu", strategy=strategy)
    check_applied(plan, strategy)
    assert plan.kernels[0].ir.family != "fixed"
    values = [fc.resolve(root, device="cpu", strategy=one, progress=False) for one in (strategy, None)]
    assert values[0].tobytes() == values[1].tobytes()


@pytest.mark.compiles
@cases(8)
@given(anchored(), STRATEGIES)
def test_knobs_of_scans_and_attention_on_gpus_change_no_bit(root: fc.Element, strategy: fc.Strategy) -> None:
    plan = plan_for_gpu(root, strategy=strategy)
    check_applied(plan, strategy)
    assert plan.kernels[0].ir.family != "fixed"
    values = [resolve_on_gpu(root, strategy=one)[0] for one in (strategy, None)]
    assert values[0].tobytes() == values[1].tobytes()
