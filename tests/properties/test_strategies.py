"""Knobs of kernels: for random programs every strategy gives the bits of the default, and is what kernels were made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.planner.knob_table import candidates
from flowcompute.planner.plan import Plan
from flowcompute.strategy import KERNEL_KNOBS
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
        "tile_rows": st.sampled_from([2, 4, 8, 32, 128]),
        "tile_columns": st.sampled_from([8, 16, 32, 128]),
    },
)
STRATEGIES = st.builds(
    lambda knobs, first, batch_bytes: fc.Strategy(**knobs, kernels={"k0": first}, batch_bytes=batch_bytes),
    KNOBS,
    KNOBS,
    st.sampled_from([None, 64, 5000]),
)


def check_applied(plan: Plan, strategy: fc.Strategy) -> None:
    """Each kernel has all knobs of its family, as wanted where it can do that; the plan says what was not applied."""
    said = {reason.element for reason in plan.reasons if "not applied" in reason.text}
    applied = set()
    for kernel in (plan_kernel.ir for plan_kernel in plan.kernels):
        values = candidates(kernel, plan.backend.traits)
        assert set(kernel.knobs.plain()) == set(values)
        wanted = strategy.of_kernel(kernel.name)
        for knob, value in kernel.knobs.plain().items():
            asked = getattr(wanted, knob)
            # Tiles of products of wide numbers are not that large.
            if asked in values[knob] and (kernel.family, asked) != ("matmul", 128):
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
