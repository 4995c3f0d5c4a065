"""Generated streams in code for GPUs, and in each form that their text has: the bits of the NumPy backend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.generated.drawing import NORMAL, SCALED, SCALED_WIDE, UNIFORM
from flowcompute.elements.generated.generator import Generator, index
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.device.programs import build
from flowcompute.gpu.render.opencl_types import memory_type
from flowcompute.gpu.render.render_generators import generated
from flowcompute.ir.index_nodes import LANE, Name
from flowcompute.ir.nodes import Argument, Generate, Var
from flowcompute.spec import FLOAT32, FLOAT64, UINT64
from tests.gpu.shapes import resolve_on_gpu

LENGTH = 1031
GENERATORS: list[tuple[Generator, np.dtype]] = [
    *((op, dtype) for table in (UNIFORM, NORMAL) for dtype, op in table.items()),
    (SCALED, UINT64),
    (SCALED_WIDE, UINT64),
]
ROUND = 97
"""Positions that a form is tried at."""


AT = Name("at")


def text_of(op: Generator, dtype: np.dtype, lanes: int, form: str, cpu: bool) -> str:
    """A kernel that stores `lanes` numbers for each of its starting positions."""
    arguments = tuple(Argument(name, "scalar", UINT64) for name in ("key", "a")[: op.arity])
    each = AT + LANE * 7 % 5 if form == "each" else None
    step = {"run": 1, "apart": 3, "same": 0, "each": 1}[form]
    helpers: dict[str, str] = {}
    var = Var("v", dtype, lanes)
    made = generated(Generate(op, AT, step, each, arguments), var, helpers, cpu)
    kind = memory_type(dtype)
    store = f"vstore{lanes}(v, 0, out + k * {lanes});" if lanes > 1 else "out[k] = v;"
    return f"""#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
{"".join(helpers.values())}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void tried(__global {kind} *out, const ulong start, const ulong key, const ulong a) {{
    for (long k = 0; k < {ROUND}; k++) {{
        const ulong at = start + k;
        {kind}{lanes if lanes > 1 else ""} v = {made};
        {store}
    }}
}}"""


def widest() -> int:
    """Lanes that kernels for the CPU have where they count in 64 bits."""
    return select_device("cpu", needs_float64=True).capabilities.lanes_of(8)


def run(text: str, dtype: np.dtype, lanes: int, start: int, key: int, last: int) -> np.ndarray:
    device = select_device("cpu", needs_float64=True)
    kernel = cl.Kernel(build(device, text, ()), "tried")
    out = np.zeros((ROUND, lanes), dtype)
    buffer = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, out.nbytes)
    kernel.set_args(buffer, *(np.uint64(number) for number in (start, key, last)))
    cl.enqueue_nd_range_kernel(device.queue, kernel, (1,), (1,))
    cl.enqueue_copy(device.queue, out, buffer)
    return out


FORMS: list[tuple[Generator, np.dtype, int, str, bool]] = [
    *(
        (op, dtype, lanes, "run", cpu)
        for op, dtype in GENERATORS
        for lanes, cpu in ((16, True), (4, False), (1, False))
    ),
    *((NORMAL[FLOAT32], FLOAT32, lanes, "run", True) for lanes in (8, 4)),
    *((NORMAL[FLOAT32], FLOAT32, 4, form, True) for form in ("same", "apart", "each")),
]


@pytest.mark.parametrize(("op", "dtype", "lanes", "form", "cpu"), FORMS, ids=lambda value: getattr(value, "name", None))
def test_every_form_gives_the_same_numbers(op: Generator, dtype: np.dtype, lanes: int, form: str, cpu: bool) -> None:
    start, key, last = 2**34 - 40, 2**63 + 11, 10**6 if op is SCALED else 10**15
    lanes = min(lanes, widest())
    got = run(text_of(op, dtype, lanes, form, cpu), dtype, lanes, start, key, last)
    lane = np.arange(lanes)
    steps = {"run": lane, "apart": 3 * lane, "same": 0 * lane, "each": lane * 7 % 5}[form]
    places = np.arange(ROUND)[:, None] + steps
    operands = [np.array(number, np.uint64) for number in (key, last)][: op.arity]
    expected = op.numpy(start, int(places.max()) + 1, dtype, *operands)[places]
    assert got.tobytes() == expected.tobytes()


ROOTS: dict[str, Callable[[], list[fc.Element]]] = {
    "numbers": lambda: [
        make(LENGTH, seed=5, dtype=dtype) for make in (fc.random.uniform, fc.random.normal) for dtype in ("f4", "f8")
    ],
    "integers": lambda: [fc.random.integers(LENGTH, low=-7, high=high, seed=5, shape=(3,)) for high in (50, 2**40)],
    "rows": lambda: [
        fc.random.normal(LENGTH, shape=(9,), seed=6).max(axis=1),
        fc.random.normal(LENGTH, shape=(9,), seed=6).sum(axis=0),
        fc.random.normal(LENGTH, shape=(4, 1), seed=6) * fc.random.uniform(LENGTH, shape=(1, 5), seed=7),
    ],
    "folds": lambda: [fc.random.uniform(LENGTH, seed=6).sum(), fc.random.normal(LENGTH, seed=6).max()],
    "positions": lambda: [
        fc.range(2, 3 * LENGTH, 3).sum(),
        index(LENGTH, (4, 3)) * 2,
        index(LENGTH, (4, 3)).max(axis=1),
    ],
}


@pytest.mark.parametrize("name", ROOTS)
def test_code_for_gpus_gives_the_same_numbers(name: str) -> None:
    roots = ROOTS[name]()
    expected = [np.asarray(root.resolve(device="numpy", progress=False)) for root in roots]
    for got, wanted in zip(resolve_on_gpu(*roots), expected, strict=True):
        assert got.tobytes() == wanted.tobytes()


def test_no_number_is_a_contraction() -> None:
    """Where everything else may be fused, these numbers keep their bits."""
    lanes = widest()
    for dtype in (FLOAT32, FLOAT64):
        op = NORMAL[dtype]
        plain = text_of(op, dtype, lanes, "run", True)
        fused = plain.replace("FP_CONTRACT OFF", "FP_CONTRACT ON", 1)
        assert fused != plain
        assert run(fused, dtype, lanes, 0, 1, 0).tobytes() == run(plain, dtype, lanes, 0, 1, 0).tobytes()
