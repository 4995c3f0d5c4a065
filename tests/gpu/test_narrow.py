"""Where a driver passes vectors of 512 bits wrongly, kernels have none."""

from __future__ import annotations

import copy
import dataclasses
import io
import re
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.gpu import device as module
from flowcompute.gpu.backend import OpenCLBackend
from flowcompute.gpu.device import passes_wide_vectors_wrong
from flowcompute.gpu.devices import select_device
from flowcompute.gpu.render import program_of
from tests.properties.cases import cases
from tests.properties.programs import programs
from tests.properties.values import Program

WIDE = re.compile(r"\b(?:(?:u?long|double)(?:8|16)|(?:u?int|float)16)\b")
ZEN_3, ZEN_4 = "flags : fpu sse2 avx avx2\n", "model name : x\nflags : fpu avx2 avx512f avx512vl\n"


@pytest.mark.parametrize(
    ("target", "processor", "wrong"),
    [
        ("pthread-x86_64-unknown-linux-gnu-znver3", ZEN_4, True),
        ("pthread-x86_64-unknown-linux-gnu-znver3", ZEN_3, False),
        ("pthread-x86_64-unknown-linux-gnu-znver4", ZEN_4, False),
        ("pthread-x86_64-unknown-linux-gnu-skylake-avx512", ZEN_4, False),
        ("pthread-x86_64-unknown-linux-gnu-haswell", ZEN_3, False),
    ],
)
def test_which_processors_these_are(target: str, processor: str, wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open", lambda *_, **__: io.StringIO(processor), raising=False)
    assert passes_wide_vectors_wrong(target) is wrong


def test_without_the_list_of_features_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open", mock.Mock(side_effect=FileNotFoundError), raising=False)
    assert not passes_wide_vectors_wrong("pthread-x86_64-unknown-linux-gnu-znver3")


def narrow(shape: str) -> OpenCLBackend:
    device = copy.copy(select_device("cpu", needs_float64=True))
    device.traits = dataclasses.replace(device.traits, lanes=4, code_shape=shape)  # type: ignore[arg-type]
    return OpenCLBackend(device)


def wide_vectors(*roots: fc.Element, shape: str, **knobs: int) -> list[str]:
    """The types of such vectors in the kernels of a graph."""
    with mock.patch.object(OpenCLBackend, "select", return_value=narrow(shape)):
        plan = fc.plan(*roots, memory="1GiB", strategy=fc.Strategy(**knobs))
    texts = [program_of(kernel)[0] for one in plan.passes for kernel in one.kernels]
    return [f"{found[0]} in {text}" for text in texts for found in WIDE.finditer(text)]


@pytest.mark.parametrize("shape", ["cpu", "gpu"])
@cases(60)
@given(program=programs())
def test_kernels_have_no_wide_vectors(shape: str, program: Program) -> None:
    try:
        assert not wide_vectors(*(root.element for root in program.roots), shape=shape)
    except PlanError as error:
        assert "memory" in error.message


@pytest.mark.parametrize("shape", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "int64"])
def test_nor_with_knobs_that_ask_for_them(shape: str, dtype: str) -> None:
    x = fc.source(np.ones((3000, 40)).astype(dtype))
    roots = (
        x * 2 + 1,
        x.sum(axis=0),
        x.max(axis=1),
        fc.cumulative_sum(x, axis=0),
        x.sum(),
        x @ np.ones((40, 40), dtype),
    )
    assert not wide_vectors(*roots, shape=shape, vector_width=16)
    assert not wide_vectors(*roots, shape=shape)


def test_others_have_them() -> None:
    device = copy.copy(select_device("cpu", needs_float64=True))
    device.traits = dataclasses.replace(device.traits, lanes=16)
    with mock.patch.object(OpenCLBackend, "select", return_value=OpenCLBackend(device)):
        [kernel] = fc.plan(fc.source(np.ones(1000, np.float32)) * 2).passes[0].kernels
    assert WIDE.search(program_of(kernel)[0])
