"""Random programs: every backend, batch size, depth and budget gives what NumPy gives on whole arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError
from tests.gpu.shapes import resolve_on_gpu
from tests.properties.cases import cases
from tests.properties.checks import check_against_numpy, check_equal, check_same_bits, resolve
from tests.properties.programs import programs
from tests.properties.values import Program

STRATEGIES = st.builds(
    fc.Strategy,
    batch_bytes=st.sampled_from([None, 1, 64, 700, 5000, 40_000]),
    depth=st.sampled_from([None, 1, 2, 5]),
    joined_batches=st.sampled_from([None, 3]),
    items_per_work_item=st.sampled_from([None, 1, 7, 4096]),
)


def check_budget(program: Program, memory: int, strategy: fc.Strategy) -> bool:
    """Whether the program fits a budget; a plan that says so stays below it, and a refusal says what would do."""
    elements = [root.element for root in program.roots]
    try:
        plan = fc.plan(*elements, device="cpu", memory=memory, strategy=strategy)
    except PlanError as error:
        assert "memory budget" in error.message
        assert error.element
        assert error.hint
        return False
    assert plan.memory.host_bytes <= memory
    assert plan.memory.host_bytes == sum(size for _, size in plan.memory.items)
    return True


def check_within_budget(program: Program, memory: int, strategy: fc.Strategy, results: list[np.ndarray]) -> None:
    """Equal bits; only a result whose length nobody knew may turn out to be too large."""
    try:
        again = resolve(program, device="cpu", strategy=strategy, memory=memory)
    except fc.RunError as error:
        assert "outgrows the memory budget" in error.message, error
        assert any(root.element.spec.is_stream and root.element.spec.length is None for root in program.roots)
        return
    check_same_bits(program, again, results)


@cases(80)
@given(programs(), STRATEGIES, st.sampled_from([1 << 12, 1 << 15, 1 << 18, 1 << 22]))
def test_every_backend_and_batch_size(program: Program, strategy: fc.Strategy, memory: int) -> None:
    reference = resolve(program, device="numpy")
    check_against_numpy(program, reference)
    results = resolve(program, device="cpu")
    check_equal(program, results, reference)
    check_against_numpy(program, results)
    check_same_bits(program, resolve(program, device="cpu", strategy=strategy), results)
    check_same_bits(program, resolve(program, device="numpy", strategy=strategy), reference)
    if check_budget(program, memory, strategy):
        check_within_budget(program, memory, strategy, results)


@pytest.mark.compiles
@cases(25)
@given(programs(), STRATEGIES)
def test_code_for_gpus(program: Program, strategy: fc.Strategy) -> None:
    elements = [root.element for root in program.roots]
    results = resolve_on_gpu(*elements)
    check_equal(program, results, resolve(program, device="numpy"))
    check_against_numpy(program, results)
    check_same_bits(program, resolve_on_gpu(*elements, strategy=strategy), results)


@cases(150)
@given(programs(steps=14), STRATEGIES)
def test_long_programs_on_the_reference(program: Program, strategy: fc.Strategy) -> None:
    results = resolve(program, device="numpy")
    check_against_numpy(program, results)
    check_same_bits(program, resolve(program, device="numpy", strategy=strategy), results)
