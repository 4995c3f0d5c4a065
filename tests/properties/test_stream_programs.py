"""Random programs over streams: what NumPy gives, in the same bits for every batch size, depth and memory budget."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError
from tests.gpu.shapes import resolve_on_gpu
from tests.properties.cases import cases
from tests.properties.checks import check_against_numpy, check_equal, check_same_bits, resolve
from tests.properties.stream_leaves import StreamProgram
from tests.properties.streams import FORMS, stream_programs
from tests.runtime.changing import resolve_changing

MEMORY = st.sampled_from([1 << 14, 1 << 17, 1 << 20])


@st.composite
def strategies(draw: st.DrawFn, program: StreamProgram) -> fc.Strategy:
    """Batches of one record where the streams are short, and of as few as keep the number of batches small elsewhere."""
    fewest = max(1, program.longest // 40)
    return fc.Strategy(
        batch_bytes=draw(st.sampled_from([1 if fewest == 1 else 8 * fewest, 24 * fewest, 100 * fewest, 8192])),
        depth=draw(st.sampled_from([None, 1, 2, 5])),
        joined_batches=draw(st.sampled_from([None, 2, 7])),
        items_per_work_item=draw(st.sampled_from([None, 1, 7])),
        input=draw(st.sampled_from([None, "mapped", "read"])),
    )


def check_within_budget(program: StreamProgram, memory: int, device: str, results: list[np.ndarray]) -> None:
    """Equal bits, or a refusal that names the budget: by the plan, or when it shows that lengths nobody knew do not fit."""
    try:
        again = resolve(program, device=device, memory=memory)
    except PlanError as error:
        assert "memory budget" in error.message, error
        return
    except fc.RunError as error:
        assert "outgrows the memory budget" in error.message or "records wait for partners" in error.message, error
        return
    check_same_bits(program, again, results)


@pytest.mark.parametrize("form", FORMS)
@cases(5)
@given(st.data())
def test_every_kind_of_operation(form: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder), steps=2, first=form))
        results = resolve(program, device="numpy")
        check_against_numpy(program, results)
        check_same_bits(program, resolve(program, device="numpy", strategy=data.draw(strategies(program))), results)


@cases(70)
@given(st.data())
def test_the_reference_gives_what_numpy_gives(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder)))
        results = resolve(program, device="numpy")
        check_against_numpy(program, results)
        for _ in range(2):
            strategy = data.draw(strategies(program))
            check_same_bits(program, resolve(program, device="numpy", strategy=strategy), results)
        check_within_budget(program, data.draw(MEMORY), "numpy", results)


@cases(25)
@given(st.data(), st.integers(0, 1 << 16))
def test_batches_may_change_while_they_run(data: st.DataObject, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder)))
        results = resolve(program, device="numpy")
        elements = [root.element for root in program.roots]
        strategy = replace(data.draw(strategies(program)), batch_bytes=data.draw(st.sampled_from([512, 8192])))
        check_same_bits(program, resolve_changing(*elements, device="numpy", seed=seed, strategy=strategy), results)


@cases(25)
@given(st.data())
def test_kernels_give_what_the_reference_gives(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder), steps=4))
        reference = resolve(program, device="numpy")
        results = resolve(program, device="cpu")
        check_against_numpy(program, results)
        check_equal(program, results, reference)
        strategy = data.draw(strategies(program))
        check_same_bits(program, resolve(program, device="cpu", strategy=strategy), results)
        check_within_budget(program, data.draw(MEMORY), "cpu", results)


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), "numpy"])
@cases(5)
@given(data=st.data())
def test_answers_do_not_depend_on_what_is_asked_beside_them(device: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder), steps=5))
        program.roots = [value for value in program.values if isinstance(value.element, fc.Compute)][-6:]
        together = resolve(program, device=device) if program.roots else []
        for root, value in zip(program.roots, together, strict=True):
            program.roots = [root]
            check_same_bits(program, resolve(program, device=device), [value])


@cases(12)
@given(st.data())
def test_code_for_gpus(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder), steps=4))
        elements = [root.element for root in program.roots]
        results = resolve_on_gpu(*elements)
        check_against_numpy(program, results)
        check_equal(program, results, resolve(program, device="numpy"))
        strategy = data.draw(strategies(program))
        check_same_bits(program, resolve_on_gpu(*elements, strategy=strategy), results)
