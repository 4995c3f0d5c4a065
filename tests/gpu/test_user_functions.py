"""Kernels written in Python against the Python that they are: every backend, code shape and batch size, bit for bit."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.spec import BFLOAT16
from tests.gpu.drawn_functions import Drawn, module
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu

pytestmark = pytest.mark.compiles

NUMBERS = 1035
"""Whole vectors, and a tail."""

FUNCTIONS = 6


def arguments() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, NUMBERS)) * 3
    x[:6] = [0.0, -0.0, np.inf, -np.inf, 1e300, 0.5]
    n, m = rng.integers(-100, 100, (2, NUMBERS))
    return x, y, n, m


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    where = (got == want) & (np.signbit(got) == np.signbit(want)) if got.dtype.kind == "f" else got == want
    where |= (got != got) & (want != want)
    assert where.all(), (np.flatnonzero(~where)[:5], got[~where][:5], want[~where][:5])


@pytest.mark.parametrize(("seed", "loops"), [*itertools.product((0, 100), (False, True)), (200, True)])
def test_drawn_functions_compute_what_python_computes(tmp_path: Path, seed: int, loops: bool) -> None:
    names = [f"f{i}" for i in range(FUNCTIONS)]
    text = "\n\n".join(Drawn(seed + i, loops=loops).source(name) for i, name in enumerate(names))
    made = module(tmp_path / "drawn.py", text)
    given = arguments()
    want = []
    for name in names:
        rows = [getattr(made, name).python(*row) for row in zip(*(one.tolist() for one in given), strict=True)]
        want += [
            np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), ["f8", "i8", "?"], strict=True)
        ]
    sources = [fc.source(one) for one in given]
    outputs = [result for name in names for result in getattr(made, name)(*sources)]
    assert len(fc.plan(*outputs).kernels) == 1
    for device in ("numpy", "cpu"):
        for got, right, output in zip(fc.resolve(*outputs, device=device), want, outputs, strict=True):
            try:
                same_bits(got.astype(right.dtype) if right.dtype.kind == "f" and got.dtype.kind == "i" else got, right)
            except AssertionError as error:
                raise AssertionError(f"{device} {output}\n{text}") from error
    if seed == 0:
        for got, right in zip(resolve_on_gpu(*outputs), want, strict=True):
            same_bits(got, right)
        in_single_numbers(made, names, given, want)


def in_single_numbers(made: Any, names: list[str], given: tuple[np.ndarray, ...], want: list[np.ndarray]) -> None:
    """The same in rows on a GPU, where a work-item has one number at a time."""
    rows = [fc.source(one.reshape(-1, 5)) for one in given]
    wholes = [getattr(made, name)(*rows)[1] for name in names]
    outputs = [whole - whole.max(axis=1, keepdims=True) for whole in wholes]
    plan = plan_for_gpu(*outputs)
    assert all("_1(" in kernel.source for kernel in plan.kernels)
    for got, right in zip(resolve_on_gpu(*outputs), want[1::3], strict=True):
        whole = right.reshape(-1, 5)
        np.testing.assert_array_equal(got, whole - whole.max(axis=1, keepdims=True))


@fc.kernel
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@fc.kernel
def guarded(n):
    """Ends only for the numbers that come to it."""
    small = n > 0 and collatz(n) < 20
    return (collatz(n) if n > 0 else -1) + (0 if n <= 0 else collatz(n)), small and (n < 1 or collatz(n) < 9)


@fc.kernel
def polar(x, y):
    return math.sqrt(x * x + y * y), math.atan2(y, x), x > y


@fc.kernel
def turned(x, y, angle):
    r, phi, above = polar(x, y)
    r2, phi2, _ = polar(y, x)
    return r * math.cos(phi + angle) + (r2 - r2) * phi2, above


@fc.kernel
def mandelbrot(a, b):
    x = y = 0.0
    for i in range(40):
        x, y = x * x - y * y + a, 2 * x * y + b
        if x * x + y * y > 4:
            return i
    return 40


@fc.kernel
def median_of_five(a, b, c, d, e):
    values = [a, b, c, d, e]
    for i in range(1, 5):
        j = i
        while j > 0 and values[j - 1] > values[j]:
            values[j - 1], values[j] = values[j], values[j - 1]
            j -= 1
    return values[2]


@fc.kernel
def every_transcendental(x):
    total = math.exp(x) + math.tanh(x) + math.sin(x) + math.cos(x) + math.log(abs(x) + 1) + math.atan(x)
    return total + math.exp2(x) + math.expm1(x) + math.log1p(abs(x)) + math.sinh(x) + math.hypot(x, 1)


def with_built_ins(x: fc.Element) -> fc.Element:
    size = fc.abs(x)
    total = fc.exp(x) + fc.tanh(x) + fc.sin(x) + fc.cos(x) + fc.log(size + 1) + fc.atan(x)
    return total + fc.exp2(x) + fc.expm1(x) + fc.log1p(size) + fc.sinh(x) + fc.hypot(x, 1)


def test_functions_of_math_have_the_bits_of_the_built_ins() -> None:
    x = np.random.default_rng(1).standard_normal(NUMBERS) * 4
    for dtype in (np.float32, np.float64):
        stream = fc.source(x.astype(dtype))
        for pair in (fc.resolve(every_transcendental(stream), with_built_ins(stream)),
                     resolve_on_gpu(every_transcendental(stream), with_built_ins(stream))):  # fmt: skip
            same_bits(*pair)


def test_numbers_that_are_not_there_cannot_keep_a_loop_from_ending() -> None:
    """Lanes behind the last number are 0, for which `collatz` never ends."""
    n = np.arange(1, 20)
    want = [collatz.python(int(k)) for k in n]
    for element in (collatz(fc.source(n)), collatz(fc.source(np.tile(n, (3, 1)))).max(axis=0)):
        np.testing.assert_array_equal(element.resolve(), want)
        np.testing.assert_array_equal(resolve_on_gpu(element)[0], want)
    total = fc.resolve(collatz(fc.source(n)).sum(), collatz(fc.source(n.reshape(1, -1))).sum(axis=1))
    assert [int(total[0]), int(total[1][0])] == [sum(want)] * 2


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_loop_behind_a_condition_ends_for_what_comes_to_it(device: str) -> None:
    n = np.arange(-3, 40)
    steps, small = fc.resolve(*guarded(fc.source(n)), device=device)
    want = [guarded.python(int(k)) for k in n]
    assert list(zip(steps.tolist(), small.tolist(), strict=True)) == want


def test_known_algorithms_on_every_backend() -> None:
    rng = np.random.default_rng(3)
    given = rng.standard_normal((NUMBERS, 5)).astype(np.float32)
    x = fc.source(given)
    columns = [x[:, i] for i in range(5)]
    elements = [median_of_five(*columns), mandelbrot(columns[0], columns[1]), *turned(columns[0], columns[1], 0.5)]
    results = [fc.resolve(*elements, device=device) for device in ("numpy", "cpu")] + [resolve_on_gpu(*elements)]
    for median, escape, cosine, above in results:
        np.testing.assert_array_equal(median, np.median(given, axis=1))
        same_bits(escape, results[0][1])
        angle = np.arctan2(given[:, 1], given[:, 0]) + 0.5
        np.testing.assert_allclose(cosine, np.hypot(given[:, 0], given[:, 1]) * np.cos(angle), rtol=2e-4, atol=2e-6)
        np.testing.assert_array_equal(above, given[:, 0] > given[:, 1])
    assert cosine.dtype == np.float32


def test_bits_are_equal_for_every_batch_size_and_dtype() -> None:
    rng = np.random.default_rng(5)
    wide = rng.standard_normal((NUMBERS, 2)) * 2
    for dtype in ("float16", "bfloat16", "float32"):
        x = fc.source(wide.astype(BFLOAT16 if dtype == "bfloat16" else dtype))
        elements = [*polar(x[:, 0], x[:, 1]), mandelbrot(x[:, 0], 0.25)]
        whole = fc.resolve(*elements)
        for got, want in zip(fc.resolve(*elements, strategy=fc.Strategy(batch_bytes=256)), whole, strict=True):
            same_bits(got, want)
        root = fc.resolve(elements[0], device="numpy")
        same_bits(whole[0].astype("f4"), root.astype("f4"))


def test_several_results_are_computed_once_in_one_kernel() -> None:
    x = fc.source(np.ones((4, 2), np.float32))
    plan = fc.plan(*polar(x[:, 0] + 1, x[:, 1]))
    assert len(plan.kernels) == 1
    body = plan.kernels[0].source.split("__kernel")[1]
    assert body.count("fc_user_polar") == 2, "in whole vectors and in the tail"


def test_functions_of_one_name_are_told_apart() -> None:
    def make(factor: float) -> fc.Element:
        @fc.kernel
        def times(x):
            return x * factor

        return times(fc.source(np.ones(3, np.float32)))

    assert [value.tolist() for value in fc.resolve(make(3.0), make(4.0), make(3.0))] == [
        [3.0] * 3,
        [4.0] * 3,
        [3.0] * 3,
    ]


def test_names_in_c_and_letters_beyond_ascii_are_no_trouble() -> None:
    @fc.kernel
    def größe(float4, λ, int_):  # noqa: PLC2401 - Python allows it
        half = float4 * λ
        v0 = half + int_
        t0 = v0 if half > 1 else -v0
        return t0 + 0

    x = np.linspace(-2, 2, 21)
    got = größe(fc.source(x), 2.0, 3).resolve()
    np.testing.assert_array_equal(got, [größe.python(v, 2.0, 3) for v in x.tolist()])


def test_an_empty_stream_gives_nothing() -> None:
    steps = collatz(fc.source(np.empty(0, np.int64)))
    assert steps.resolve().shape == steps.resolve(device="numpy").shape == (0,)


def test_what_computes_in_float64_says_so_where_there_is_none() -> None:
    @fc.kernel
    def rounded(n):
        return round(n / 3)

    n = np.arange(20)
    element = rounded(fc.source(n))
    backend = gpu_shaped()
    lacking = dataclasses.replace(backend.capabilities, float64=False)
    with (
        mock.patch.object(backend, "description", dataclasses.replace(backend.description, capabilities=lacking)),
        pytest.raises(fc.PlanError, match=r"rounded.*\n?.*float64"),
    ):
        plan_for_gpu(element)
    np.testing.assert_array_equal(element.resolve(), [round(k / 3) for k in n.tolist()])


def test_functions_in_opencl_c() -> None:
    x = np.linspace(-2, 2, NUMBERS).astype(np.float32)
    stream = fc.source(x)
    first = fc.opencl(
        """// a helper {
        float square(float x) { return x * x; }
        float f(float x, int above) { float y = x; while (y != x + 1.0f) y += 1.0f; return square(x) + above; }""",
        stream, stream > 0,
    )  # fmt: skip
    elements = [
        first + 1,
        fc.opencl("int f(float v) { return v > 1; }", stream, dtype=bool),
        fc.opencl("float f(float v) { return v / 3; }", stream, dtype="float16"),
        fc.opencl("double f(int n, double y) { return n * y; }", fc.source(np.arange(NUMBERS)), 0.5, dtype="float64"),
    ]
    want = [x * x + (x > 0) + np.float32(1), x > 1, (x / np.float32(3)).astype("f2"), np.arange(NUMBERS) * 0.5]
    assert len(fc.plan(*elements[:3]).kernels) == 1
    for values in (fc.resolve(*elements), resolve_on_gpu(*elements)):
        for got, right in zip(values, want, strict=True):
            same_bits(got, right)


def test_suffixes_of_numbers_are_no_names_of_functions() -> None:
    x = np.linspace(-2, 2, NUMBERS).astype(np.float32)
    text = "float e5(float x) { return 2.f * x; } float f(float x) { struct { float f; } v1 = {1.e5f}; return e5(x) + v1.f + .5f; }"
    (got,) = resolve_on_gpu(fc.opencl(text, fc.source(x)))
    same_bits(got, np.float32(2) * x + np.float32(1e5) + np.float32(0.5))
    same_bits(fc.resolve(fc.opencl(text, fc.source(x))), got)


def test_functions_that_have_no_short_declaration_are_found() -> None:
    x = np.linspace(0, 1, NUMBERS).astype(np.float32)
    got = fc.resolve(fc.opencl("float f(float x) { return x * asinpi(x); }", fc.source(x)))
    np.testing.assert_allclose(got, x * np.arcsin(x.astype("f8")) / np.pi, rtol=1e-5)


def test_opencl_c_that_does_not_fit_is_refused() -> None:
    x = fc.source(np.ones(3, np.float32))
    with pytest.raises(fc.KernelError, match="cannot take so many inputs"):
        fc.opencl("float f(float x, float y) { return x; }", x)
    with pytest.raises(fc.KernelError, match="cannot find a function in the source"):
        fc.opencl("float x;", x)
    with pytest.raises(fc.KernelError, match="undeclared identifier 'y'"):
        fc.opencl("float f(float x) { return y; }", x).resolve()
    with pytest.raises(fc.PlanError, match="which NumPy cannot run"):
        fc.opencl("float f(float x) { return x; }", x).resolve(device="numpy")
    with pytest.raises(fc.SpecError, match="complex64 is not supported"):
        fc.opencl("float f(float x) { return x; }", x, dtype="complex64")


@fc.kernel
def indexed(n, x):
    """Every way to index: known, by a counter and by value, below 0 and outside."""
    a = [10.0, 20.0, 30.0, 40.0]
    a[n % 4 - 4] = x
    a[n] += 1.0
    total = 0.0
    for i in range(-3, 6):
        total = 2 * total + a[i]
        a[i - 1] -= 0.5
    return a[n], a[-1], total


def test_indices_below_zero_count_from_the_end_and_others_are_the_nearest_inside() -> None:
    n = np.arange(-9, 10)
    x = np.linspace(1, 2, 19)

    def place(i: int) -> int:
        return min(max(i + 4 if i < 0 else i, 0), 3)

    want = []
    for at, value in zip(n.tolist(), x.tolist(), strict=True):
        a = [10.0, 20.0, 30.0, 40.0]
        a[at % 4] = value
        a[place(at)] += 1.0
        total = 0.0
        for i in range(-3, 6):
            total = 2 * total + a[place(i)]
            a[place(i - 1)] -= 0.5
        want.append((a[place(at)], a[3], total))
    elements = indexed(fc.source(n), fc.source(x))
    for got in (fc.resolve(*elements), fc.resolve(*elements, device="numpy"), resolve_on_gpu(*elements)):
        assert list(zip(*(one.tolist() for one in got), strict=True)) == want
