"""Positions in texts, and the rotary embedding: against exact angles, for any batch, device and order of sends."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import CheckpointWarning, RunError, SpecError
from tests.gpu.shapes import resolve_on_gpu

RNG = np.random.default_rng(18)
TEXTS = np.repeat(RNG.integers(0, 4, 80), RNG.integers(1, 9, 80)).astype(np.int32)
BATCHES = (100, 1 << 20)
DEVICES = ["numpy", "cpu"]


def counted(texts: np.ndarray) -> np.ndarray:
    """The positions, one after the other."""
    made: list[int] = []
    for record, text in enumerate(texts):
        made.append(made[-1] + 1 if record and text == texts[record - 1] else 0)
    return np.array(made, np.int64)


def bits(element: fc.Element, device: str) -> bytes:
    """The value, whose bits are the same for every batch size."""
    found = {
        element.resolve(device=device, strategy=fc.Strategy(batch_bytes=batch_bytes)).tobytes()
        for batch_bytes in BATCHES
    }
    assert len(found) == 1
    return found.pop()


# -- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_positions_begin_anew_with_each_text(dtype: str, device: str) -> None:
    texts = TEXTS.astype(dtype)
    if dtype == "uint64":
        # Numbers that float64 cannot tell apart are other texts all the same.
        texts = texts + np.uint64(2**63)
    made = fc.nn.position(fc.source(np.zeros((len(texts), 3))), text=fc.source(texts))
    assert (made.shape, made.dtype) == ((len(texts),), np.int64)
    assert bits(made, device) == counted(texts).tobytes()


def test_positions_by_code_for_gpus() -> None:
    x = fc.source(np.ones((len(TEXTS), 8), np.float32))
    at = fc.nn.position(x, text=fc.source(TEXTS))
    positions, turned = resolve_on_gpu(at, fc.nn.rope(x, at), strategy=fc.Strategy(batch_bytes=1 << 12))
    assert positions.tobytes() == counted(TEXTS).tobytes()
    np.testing.assert_allclose(turned, fc.nn.rope(x, counted(TEXTS)).resolve(device="numpy"), atol=2e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)], ids=str)
def test_one_text_counts_records(shape: tuple[int, ...], device: str) -> None:
    tokens = np.full((71, *shape), np.nan, np.float32)
    assert bits(fc.nn.position(fc.source(tokens)), device) == np.arange(71).tobytes()
    unknown = fc.source(tokens)[fc.source(np.arange(71)) % 3 > 0]
    assert bits(fc.nn.position(unknown), device) == np.arange(47).tobytes()


def test_a_resident_vector_of_texts() -> None:
    made = fc.nn.position(fc.source(np.zeros(len(TEXTS))), text=TEXTS)
    assert bits(made, "cpu") == counted(TEXTS).tobytes()


def test_pairs_of_token_and_text() -> None:
    pairs = fc.source(np.stack([np.arange(len(TEXTS)), TEXTS], axis=1))
    assert bits(fc.nn.position(pairs[:, 0], text=pairs[:, 1]), "cpu") == counted(TEXTS).tobytes()


@given(st.lists(st.integers(-2, 2), max_size=20), st.sampled_from([8, 24, 10_000]))
def test_random_texts(texts: list[int], batch_bytes: int) -> None:
    array = np.array(texts, np.int64)
    made = fc.nn.position(fc.source(array), text=fc.source(array))
    got = made.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=batch_bytes))
    assert got.tobytes() == counted(array).tobytes()


def counted_in_slots(texts: list[int], slots: int) -> list[int]:
    """Count record by record: text t is kept in slot t % slots."""
    last: dict[int, tuple[int, int]] = {}
    found = []
    for text in texts:
        before, position = last.get(text % slots, (text, -1))
        last[text % slots] = text, position + 1 if text == before else 0
        found.append(last[text % slots][1])
    return found


@given(st.lists(st.integers(-9, 9), max_size=40), st.integers(1, 7), st.sampled_from([24, 100, 10_000]), st.data())
def test_texts_that_come_in_turns(texts: list[int], slots: int, batch_bytes: int, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["int8", "int64"] + ["uint8", "uint64"] * (min(texts, default=0) >= 0)))
    array = np.array(texts, dtype)
    made = fc.nn.position(fc.source(array), text=fc.source(array), slots=slots)
    got = made.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=batch_bytes))
    assert got.tolist() == counted_in_slots(texts, slots)


def of_feed(form: str) -> fc.Element:
    tokens = fc.feed(dtype="int32")
    return fc.nn.position(tokens, text=tokens) if form == "texts" else fc.nn.position(tokens)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["texts", "one text"])
def test_flows_count_on_over_sends_and_freezes(form: str, device: str, tmp_path: Path) -> None:
    wanted = counted(TEXTS) if form == "texts" else np.arange(len(TEXTS))
    cuts = [0, 1, 2, 2, 9, 60, len(TEXTS)]
    parts = []
    with of_feed(form).flow(device=device) as flow:
        for start, stop in zip(cuts, cuts[1:-1], strict=False):
            flow.send(TEXTS[start:stop])
            parts.append(flow.receive())
        flow.freeze(tmp_path / "kept")
    other = {"numpy": "cpu", "cpu": "numpy"}[device]
    opener = fc.thaw(tmp_path / "kept").flow(device=other)
    with pytest.warns(CheckpointWarning, match="goes on on"):
        opened = opener.__enter__()
    with opened as flow:
        flow.send(TEXTS[cuts[-2] :])
        parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["texts", "one text"])
def test_a_run_that_is_frozen_again_and_again(form: str, device: str, tmp_path: Path) -> None:
    texts = np.tile(TEXTS, 12)
    np.save(tmp_path / "texts.npy", texts)

    def made() -> fc.Element:
        # A selection has no known length, so that records are counted.
        tokens = fc.open(tmp_path / "texts.npy")
        tokens = tokens[tokens >= 0]
        return fc.nn.position(tokens, text=tokens if form == "texts" else None)

    batches = 0

    def stop(run: fc.Run) -> None:
        nonlocal batches
        batches += 1
        if batches in (1, 3, 6):
            run.freeze()

    options: dict[str, Any] = {"strategy": fc.Strategy(batch_bytes=1 << 11), "progress": False, "device": device}
    for _ in range(3):
        with pytest.raises(RunError, match="was frozen"):
            fc.start(made(), checkpoint=tmp_path / "kept", on_batch=stop, **options).wait()
    (value,) = fc.run(made(), checkpoint=tmp_path / "kept", **options).values
    wanted = counted(texts) if form == "texts" else np.arange(len(texts))
    assert np.asarray(value).tobytes() == wanted.tobytes()


# -- rotary embedding -----------------------------------------------------------------------------


def exact_angles(at: np.ndarray, base: float, dims: int) -> np.ndarray:
    """Angles in (-pi, pi], of which 60 digits were computed before whole turns were taken off."""
    with localcontext(prec=60):
        two_pi = Decimal("6.28318530717958647692528676655900576839433879875021164194988918461563281257242")
        turns = [(Decimal(base).ln() * -2 * pair / dims).exp() / two_pi for pair in range(dims // 2)]
        rest = [[(int(one) * each) % 1 for each in turns] for one in at]
        return np.array([[float(one * two_pi) for one in row] for row in rest])


def turned(
    x: np.ndarray, angles: np.ndarray, pairs: str = "neighbours", dims: int | None = None, scale: float = 1.0
) -> np.ndarray:
    """Vectors of float64 whose pairs are turned by these angles `(records, pairs)`."""
    dims = x.shape[-1] if dims is None else dims
    angles = angles.reshape(len(x), *(1,) * (x.ndim - 2), dims // 2)
    cos, sin = np.cos(angles) * scale, np.sin(angles) * scale
    one, other = (slice(0, dims, 2), slice(1, dims, 2))
    if pairs == "halves":
        one, other = slice(0, dims // 2), slice(dims // 2, dims)
    x = x.astype(np.float64)
    made = x.copy()
    made[..., one] = x[..., one] * cos - x[..., other] * sin
    made[..., other] = x[..., one] * sin + x[..., other] * cos
    return made


AT = np.concatenate([np.arange(20), RNG.integers(0, 1_000_000, 20), [-1, -77_777, 999_999, 1_000_000]])
ANGLES = exact_angles(AT, 10000.0, 16)
BOUNDS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 5e-6, "float64": 1e-11}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("pairs", ["neighbours", "halves"])
def test_rotations_are_those_of_exact_angles(pairs: Any, dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    forms = [((16,), None), ((3, 16), None), ((2, 3, 21), 16)]
    for shape, dims in forms if dtype == "float32" else forms[1:2]:
        x = RNG.standard_normal((len(AT), *shape)).astype(kind)
        made = fc.nn.rope(fc.source(x), fc.source(AT), pairs=pairs, dims=dims)
        assert (made.shape, made.dtype) == (x.shape, kind)
        wanted = turned(x, ANGLES, pairs, dims)
        for device in DEVICES:
            got = np.frombuffer(bits(made, device), kind).reshape(x.shape)
            np.testing.assert_allclose(got.astype("f8"), wanted, atol=BOUNDS[dtype], rtol=BOUNDS[dtype])
            if dims is not None:
                assert got[..., dims:].tobytes() == x[..., dims:].tobytes()


@pytest.mark.parametrize("pairs", ["neighbours", "halves"])
def test_rotations_by_code_for_gpus(pairs: Any) -> None:
    x = RNG.standard_normal((len(AT), 3, 20)).astype(np.float32)
    made = fc.nn.rope(fc.source(x), fc.source(AT.astype(np.int32)), pairs=pairs, dims=16)
    (got,) = resolve_on_gpu(made, strategy=fc.Strategy(batch_bytes=1 << 10))
    np.testing.assert_allclose(got, turned(x, ANGLES, pairs, 16), atol=5e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("base", [10000.0, 500000.0, 1e6, 1.5])
def test_angles_of_large_positions(base: float, device: str) -> None:
    """The angles themselves: within 1e-7 of a turn in float32, whatever the position."""
    far = [1_000_000, 999_983, 2**31 - 1, -(2**31), 2**40 + 1]
    at = np.array([*range(0, 1_000_000, 37_003), *far], np.int64)
    angles = exact_angles(at, base, 64)
    for dtype, bound in (("float32", 1e-7), ("float64", 1e-7 * 2**-29 + 2.0**40 * 2**-63)):
        x = np.zeros((len(at), 64), dtype)
        x[:, ::2] = 1
        got = fc.nn.rope(fc.source(x), fc.source(at), base=base).resolve(device=device).astype("f8")
        error = np.angle(np.exp(1j * (np.arctan2(got[:, 1::2], got[:, ::2]) - angles))) / (2 * math.pi)
        assert abs(error).max() <= bound


def test_lengths_and_differences_of_positions_are_kept() -> None:
    q, k = RNG.standard_normal((2, 1, 64))
    at = np.arange(0, 900_000, 9_001)
    many = np.ones((len(at), 1))
    first = fc.nn.rope(fc.source(q * many), fc.source(at)).resolve()
    second = fc.nn.rope(fc.source(k * many), fc.source(at + 5)).resolve()
    np.testing.assert_allclose((first**2).sum(1), (q**2).sum(), rtol=1e-13)
    scores = (first * second).sum(1)
    np.testing.assert_allclose(scores, scores[0], atol=1e-9)


def test_position_0_changes_nothing() -> None:
    x = RNG.standard_normal((9, 2, 8)).astype(np.float32)
    for pairs in ("neighbours", "halves"):
        got = fc.nn.rope(fc.source(x), fc.source(np.zeros(9, np.uint8)), pairs=pairs).resolve()  # type: ignore[arg-type]
        np.testing.assert_array_equal(got, x)


def test_the_two_orders_are_one_up_to_an_order_of_numbers() -> None:
    x = RNG.standard_normal((len(AT), 12)).astype(np.float32)
    order = np.arange(12).reshape(2, 6).T.reshape(-1)
    halves = fc.nn.rope(fc.source(x), fc.source(AT), pairs="halves").resolve(device="numpy")
    neighbours = fc.nn.rope(fc.source(x[:, order]), fc.source(AT)).resolve(device="numpy")
    assert halves[:, order].tobytes() == neighbours.tobytes()


# -- scalings -------------------------------------------------------------------------------------


def ggml_angles(at: np.ndarray, base: float, dims: int, *, factor: float, context: int, ext: float,
                fast: float, slow: float, factors: np.ndarray) -> np.ndarray:  # fmt: skip
    """Angles as ggml has them, in float64: `rope_yarn` and `ggml_rope_yarn_corr_dims`."""

    def corrected(rotations: float) -> float:
        return dims * math.log(context / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(0, math.floor(corrected(fast))), min(dims - 1, math.ceil(corrected(slow)))
    pair = np.arange(dims // 2)
    ramp = (1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)) * ext
    extrapolated = np.asarray(at, np.float64)[:, None] * base ** (-2 * pair / dims) / factors
    return np.asarray(extrapolated / factor * (1 - ramp) + extrapolated * ramp)


NEAR = np.concatenate([np.arange(30), RNG.integers(0, 20_000, 30)])
FACTORS = np.linspace(0.75, 8, 32).astype(np.float32)
VECTORS = RNG.standard_normal((len(NEAR), 2, 64))


@pytest.mark.parametrize("pairs", ["neighbours", "halves"])
@pytest.mark.parametrize("ext", [1.0, 0.25, 0.0])
@pytest.mark.parametrize(
    ("base", "context", "fast", "slow"), [(1e4, 4096, 32, 1), (1e6, 32768, 8, 4), (5e5, 64, 64, 2)]
)
def test_yarn_is_that_of_ggml(base: float, context: int, fast: float, slow: float, ext: float, pairs: Any) -> None:
    factor, attention = 4.0, 1.25
    made = fc.nn.rope(
        fc.source(VECTORS), fc.source(NEAR), base, pairs, None, "yarn", factor=factor, original_context=context,
        ext_factor=ext, attn_factor=attention, beta_fast=fast, beta_slow=slow,
    )  # fmt: skip
    angles = ggml_angles(
        NEAR, base, 64, factor=factor, context=context, ext=ext, fast=fast, slow=slow, factors=np.ones(32)
    )
    scale = attention * (1 + 0.1 * math.log(factor) if ext else 1)
    np.testing.assert_allclose(made.resolve(), turned(VECTORS, angles, pairs, scale=scale), atol=1e-9)


def test_linear_scaling_divides_angles() -> None:
    made = fc.nn.rope(fc.source(VECTORS), fc.source(NEAR * 8), scaling="linear", factor=8, attn_factor=0.5)
    plain = fc.nn.rope(fc.source(VECTORS), fc.source(NEAR))
    np.testing.assert_allclose(made.resolve(), plain.resolve() / 2, atol=1e-12)
    none = fc.nn.rope(fc.source(VECTORS), fc.source(NEAR), scaling="none")
    assert none.resolve().tobytes() == plain.resolve().tobytes()


@pytest.mark.parametrize("device", DEVICES)
def test_frequency_factors_divide_angles(device: str) -> None:
    angles = NEAR[:, None] * 1e4 ** (-2 * np.arange(32) / 64) / FACTORS.astype("f8")
    wanted = turned(VECTORS, angles)

    def made(factors: Any, **options: Any) -> Any:
        return fc.nn.rope(fc.source(VECTORS), fc.source(NEAR), frequency_factors=factors, **options)

    known = made(FACTORS).resolve(device=device)
    np.testing.assert_allclose(known, wanted, atol=1e-9)
    # Factors that are known only when it runs give the same bits.
    found = fc.source(np.stack([FACTORS, FACTORS * 0])).max(axis=0)
    assert made(found).resolve(device=device).tobytes() == known.tobytes()
    exact_factors = FACTORS.astype("f8") + 1e-9
    exact = made(exact_factors).resolve(device=device)
    np.testing.assert_allclose(exact, turned(VECTORS, NEAR[:, None] * 1e4 ** (-np.arange(32) / 32) / exact_factors))
    yarn = {"scaling": "yarn", "factor": 2.0, "original_context": 1024}
    mixed = ggml_angles(NEAR, 1e4, 64, factor=2.0, context=1024, ext=1.0, fast=32, slow=1, factors=FACTORS.astype("f8"))
    scale = 1 + 0.1 * math.log(2)
    np.testing.assert_allclose(
        made(FACTORS, **yarn).resolve(device=device), turned(VECTORS, mixed, scale=scale), atol=1e-9
    )


@pytest.mark.parametrize("exponent", [-8, -3, 0, 7, 14])
def test_factors_known_late_are_divided_exactly(exponent: int) -> None:
    """A rounded quotient of 53 bits would turn positions of 2^50 elsewhere."""
    factors = (RNG.uniform(1, 2, 8) * 2.0**exponent).astype(np.float32)
    at = np.array([2**50 + 12345, 1, 2**33])
    x = fc.source(np.ones((3, 16)))
    late = fc.source(np.stack([factors, factors])).max(axis=0)
    one, other = (
        fc.nn.rope(x, fc.source(at), frequency_factors=factors).resolve(device="numpy"),
        fc.nn.rope(x, fc.source(at), frequency_factors=late).resolve(device="numpy"),
    )
    assert one.tobytes() == other.tobytes()


# -- plans, flows, refusals -----------------------------------------------------------------------


def test_angles_are_computed_once_and_a_rotation_is_one_kernel() -> None:
    x = fc.source(np.ones((40, 64), np.float32))
    at = fc.nn.position(x)
    weights = np.eye(64, dtype=np.float32)
    queries, keys = (fc.reshape(x @ (weights * size), (-1, 4, 16)) for size in (1, 2))
    layers = [fc.nn.rope(fc.reshape(one, (-1, 4, 16)), at) for one in (queries, keys, keys * 3)]
    # Cosines and sines, and the rotations, which are put side by side.
    assert len([kernel for kernel in fc.plan(*layers).kernels if "rope" in repr(kernel)]) == 2
    alone = fc.plan(layers[0])
    assert len(alone.kernels) == len(fc.plan(queries).kernels) + 3


@pytest.mark.parametrize("device", DEVICES)
def test_flows_turn_what_is_sent(device: str) -> None:
    x = RNG.standard_normal((30, 2, 8)).astype(np.float32)
    feed = fc.feed((2, 8), "float32")
    whole = fc.nn.rope(fc.source(x), fc.source(np.arange(30))).resolve(device=device)
    with fc.nn.rope(feed, fc.nn.position(feed)).flow(device=device) as flow:
        parts = []
        for start, stop in ((0, 1), (1, 2), (2, 2), (2, 30)):
            flow.send(x[start:stop])
            parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == whole.tobytes()


VECTOR, PLACE = fc.source(np.ones((6, 4), np.float32)), fc.source(np.arange(6))
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "positions of a resident": (lambda: fc.nn.position(fc.constant([1, 2])), "expected  a stream"),
    "texts that are fractions": (lambda: fc.nn.position(PLACE, text=VECTOR[:, 0]), "a stream of single integers"),
    "texts that are bools": (lambda: fc.nn.position(PLACE, text=PLACE > 2), "a stream of single integers"),
    "texts with axes": (lambda: fc.nn.position(PLACE, text=VECTOR.astype("int8")), "one number a record"),
    "texts of another length": (lambda: fc.nn.position(PLACE, text=PLACE[1:]), "different length"),
    "a vector of another length": (lambda: fc.nn.position(PLACE, text=[1, 2]), "6 rows"),
    "no slots": (lambda: fc.nn.position(PLACE, text=PLACE.astype("int8"), slots=0), "slots"),
    "too many slots": (lambda: fc.nn.position(PLACE, text=PLACE.astype("int8"), slots=10**6), "slots"),
    "no texts": (lambda: fc.nn.position(PLACE, text="text"), "operand"),
    "a resident": (lambda: fc.nn.rope(np.ones((6, 4)), PLACE), "a stream of items (..., d)"),
    "numbers": (lambda: fc.nn.rope(VECTOR[:, 0], PLACE), "a stream of items (..., d)"),
    "odd vectors": (lambda: fc.nn.rope(VECTOR[:, :3], PLACE), "an even number of dims"),
    "vectors of nothing": (lambda: fc.nn.rope(VECTOR[:, :0], PLACE), "an even number of dims"),
    "odd dims": (lambda: fc.nn.rope(VECTOR, PLACE, dims=3), "an even number of dims"),
    "too many dims": (lambda: fc.nn.rope(VECTOR, PLACE, dims=6), "dims"),
    "no dims": (lambda: fc.nn.rope(VECTOR, PLACE, dims=0), "dims"),
    "fractions for positions": (lambda: fc.nn.rope(VECTOR, VECTOR[:, 0]), "a stream of single integers"),
    "positions of another length": (lambda: fc.nn.rope(VECTOR, PLACE[1:]), "different length"),
    "another order": (lambda: fc.nn.rope(VECTOR, PLACE, pairs="thirds"), "'neighbours' or 'halves'"),  # type: ignore[arg-type]
    "a base below 1": (lambda: fc.nn.rope(VECTOR, PLACE, base=0.5), "from 1 on"),
    "no base": (lambda: fc.nn.rope(VECTOR, PLACE, base=math.nan), "cannot take base="),
    "an infinite base": (lambda: fc.nn.rope(VECTOR, PLACE, base=math.inf), "cannot take base="),
    "another scaling": (lambda: fc.nn.rope(VECTOR, PLACE, scaling="longrope"), "'none', 'linear' or 'yarn'"),  # type: ignore[arg-type]
    "linear without a factor": (lambda: fc.nn.rope(VECTOR, PLACE, scaling="linear"), "factor= with scaling='linear'"),
    "a factor without scaling": (lambda: fc.nn.rope(VECTOR, PLACE, factor=2), "scaling='none'"),
    "a factor of 0": (lambda: fc.nn.rope(VECTOR, PLACE, scaling="linear", factor=0), "cannot take factor="),
    "a factor that shrinks": (
        lambda: fc.nn.rope(VECTOR, PLACE, scaling="linear", factor=0.5),
        "a finite number from 1 on",
    ),
    "an attention factor alone": (lambda: fc.nn.rope(VECTOR, PLACE, attn_factor=2), "cannot take attn_factor="),
    "yarn without a context": (
        lambda: fc.nn.rope(VECTOR, PLACE, scaling="yarn", factor=2),
        "original_context= with scaling='yarn'",
    ),
    "yarn by less than nothing": (
        lambda: fc.nn.rope(VECTOR, PLACE, scaling="yarn", factor=2, original_context=64, ext_factor=-1),
        "ext_factor= from 0 to 1",
    ),
    "yarn of one frequency": (
        lambda: fc.nn.rope(VECTOR, PLACE, 1.0, scaling="yarn", factor=2, original_context=64),
        "a base above 1",
    ),
    "factors for others": (lambda: fc.nn.rope(VECTOR, PLACE, frequency_factors=[1.0] * 3), "a resident vector of 2"),
    "a factor that is 0": (lambda: fc.nn.rope(VECTOR, PLACE, frequency_factors=[1.0, 0.0]), "positive, finite"),
    "a factor that is NaN": (lambda: fc.nn.rope(VECTOR, PLACE, frequency_factors=[1.0, math.nan]), "positive, finite"),
    "late factors of float64": (
        lambda: fc.nn.rope(VECTOR, PLACE, frequency_factors=fc.source(np.ones((3, 2))).max(axis=0)),
        "expected  float32",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(case: str) -> None:
    build, words = REFUSED[case]
    with pytest.raises(SpecError) as caught:
        build()
    assert words in str(caught.value)
