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
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device import device as module
from flowcompute.gpu.device.device import has_avx512_mismatch
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64
from tests.gpu.test_ops import made
from tests.properties.cases import cases
from tests.properties.programs import programs
from tests.properties.values import Program
from tests.support.slow import slow_but

WIDE = re.compile(r"\b(?:convert_|as_)?(?:(?:u?long|double)(?:8|16)|(?:u?int|float)16)(?:_rt[a-z]|_sat)*\b")
ZEN_3, ZEN_4 = "flags : fpu sse2 avx avx2\n", "model name : x\nflags : fpu avx2 avx512f avx512vl\n"


@pytest.mark.parametrize(
    ("target", "processor", "wrong"),
    [
        ("pthread-x86_64-unknown-linux-gnu-znver3", ZEN_4, True),
        ("pthread-x86_64-unknown-linux-gnu-znver3", ZEN_3, False),
        ("pthread-x86_64-unknown-linux-gnu-znver4", ZEN_4, False),
        ("pthread-x86_64-unknown-linux-gnu-skylake-avx512", ZEN_4, True),
        ("pthread-x86_64-unknown-linux-gnu-cascadelake", ZEN_4, True),
        ("pthread-x86_64-unknown-linux-gnu-cooperlake", ZEN_4, True),
        ("pthread-x86_64-unknown-linux-gnu-icelake-client", ZEN_4, True),
        ("pthread-x86_64-unknown-linux-gnu-icelake-server", ZEN_4, True),
        ("pthread-x86_64-unknown-linux-gnu-haswell", ZEN_3, False),
    ],
)
def test_which_processors_these_are(target: str, processor: str, wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open", lambda *_, **__: io.StringIO(processor), raising=False)
    assert has_avx512_mismatch(target) is wrong


def test_without_the_list_of_features_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open", mock.Mock(side_effect=FileNotFoundError), raising=False)
    assert not has_avx512_mismatch("pthread-x86_64-unknown-linux-gnu-znver3")


def narrow(shape: str, lanes: int = 8, vector_bytes: int = 32) -> OpenCLBackend:
    device = copy.copy(select_device("cpu", needs_float64=True))
    device.capabilities = dataclasses.replace(
        device.capabilities,
        lanes=lanes,
        vector_bytes=vector_bytes,
        code_shape=shape,  # type: ignore[arg-type]
    )
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


def forms(dtype: str) -> list[fc.Element]:
    """What random programs seldom have."""
    x = fc.source(np.ones((3000, 40)).astype(dtype))
    images = fc.source(np.ones((30, 3, 9, 9)).astype(dtype))
    made = [
        x * 2 + 1,
        x[:, 0].sum(),
        x.mean(axis=0),
        x.argmax(axis=1),
        x.astype("int8").sum(axis=1),
        x.astype("int32") > 3,
        fc.cumulative_sum(x, axis=0),
        fc.cumulative_sum(x, axis=1),
        fc.cumulative_max(x, axis=0),
        fc.window(x, 3).sum(axis=1),
        fc.take(x, [3, 1, 5], axis=1) + 1,
        x @ np.ones((40, 40), dtype),
        fc.range(3000) * 2,
        fc.random.normal(3000, seed=1, shape=(5,)),
        fc.random.integers(3000, low=0, high=9, seed=1),
        twice(x[:, 0]),
    ]
    if np.dtype(dtype).kind == "f":
        q = x[:, :8][:, None] * 1
        made += [
            fc.nn.softmax(x, axis=1),
            fc.nn.layer_norm(x, axis=1),
            fc.ema(x, 0.5),
            fc.exp(x).var(axis=0),
        ]
        made += [fc.nn.attention(q, q, q), fc.nn.conv2d(images, fc.constant(np.ones((4, 3, 3, 3), dtype)))]
    return made


@fc.kernel
def twice(a: float) -> float:
    count = 0
    for i in range(4):
        count += i
    return a * 2 + count


@pytest.mark.parametrize("shape", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "int64"])
def test_nor_with_knobs_that_ask_for_them(shape: str, dtype: str) -> None:
    for root in forms(dtype):
        assert not wide_vectors(root, shape=shape, vector_width=16), root
        assert not wide_vectors(root, shape=shape), root


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16, FLOAT64, INT64, np.dtype("int8"), BOOL], ids=str)
def test_nor_has_any_operation(dtype: np.dtype) -> None:
    x = fc.source(np.ones(1000).astype(dtype))
    for count in (1, 2):
        for name, (_, root) in made(count, [x] * count, dtype).items():
            assert not wide_vectors(root, shape="cpu"), name


def test_others_have_them() -> None:
    device = copy.copy(select_device("cpu", needs_float64=True))
    device.capabilities = dataclasses.replace(device.capabilities, lanes=16, vector_bytes=128)
    with mock.patch.object(OpenCLBackend, "select", return_value=OpenCLBackend(device)):
        [kernel] = fc.plan(fc.source(np.ones(1000, np.float32)) * 2).passes[0].kernels
    assert WIDE.search(program_of(kernel)[0])


@pytest.mark.parametrize(("lanes", "vector_bytes"), [(4, 16), (4, 32), (8, 32)])
@pytest.mark.parametrize("dtype", slow_but(["float64"], ["float64", "float32", "float16", "int32"], ["float16"]))
def test_folds_of_numbers_have_the_reference_s_bits(dtype: str, lanes: int, vector_bytes: int) -> None:
    """A vector of four float64 fills 32 bytes: the number that a variance subtracts stood in one lane of it only."""
    x = fc.source((np.random.default_rng(0).standard_normal(3000) * 9 + 50).astype(dtype))
    roots = (x.var(axis=0), x.sum(axis=0), x.mean(axis=0), x.max(axis=0), x.argmin(axis=0), (x * 2).var(axis=0))
    with mock.patch.object(OpenCLBackend, "select", return_value=narrow("cpu", lanes, vector_bytes)):
        found = fc.resolve(*roots, progress=False)
    for result, wanted in zip(found, fc.resolve(*roots, device="numpy", progress=False), strict=True):
        assert np.asarray(result).tobytes() == np.asarray(wanted).tobytes()
