"""Random numbers: published blocks, what is made of them, equal bits everywhere, and whether they look random."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.generated.philox import blocks, box_muller, philox
from flowcompute.errors import SpecError
from flowcompute.graph.graph import build_graph
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, SUPPORTED_DTYPES, is_float
from tests.support.slow import slow_but

INTEGERS = [dtype for dtype in SUPPORTED_DTYPES if dtype.kind in "iu"]
FLOATS = [dtype for dtype in SUPPORTED_DTYPES if is_float(dtype)]
MANY = 1 << 18

KNOWN_BLOCKS = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""
"""Counter, key and result of Philox4x32-10 as published with Random123 (tests/kat_vectors)."""


def resolved(element: fc.Element, **options: Any) -> np.ndarray:
    return np.asarray(element.resolve(progress=False, **options))


def everywhere(element: fc.Element) -> np.ndarray:
    """The value, of equal bits on every backend and for every batch size."""
    value = resolved(element)
    for options in ({"device": "numpy"}, {"strategy": fc.Strategy(batch_bytes=264)}):
        assert resolved(element, **options).tobytes() == value.tobytes(), options
    return value


# -- an oracle in Python's own numbers ------------------------------------------------------------------


def block_of(number: int, key: int, tag: int) -> list[int]:
    """Philox4x32-10 as its authors write it: four words of 32 bits."""
    c = [number & 0xFFFFFFFF, number >> 32, tag, 0]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def word_of(position: int, bits: int, key: int, tag: int) -> int:
    share = 128 // bits
    c = block_of(position // share, key, tag)
    whole = sum(word << (32 * place) for place, word in enumerate(c))
    return whole >> (bits * (position % share)) & ((1 << bits) - 1)


def uniform_of(position: int, dtype: np.dtype, key: int) -> float:
    kept = {FLOAT16: 11, BFLOAT16: 8, FLOAT32: 24, FLOAT64: 53}[dtype]
    bits = 64 if dtype == FLOAT64 else 32
    return (word_of(position, bits, key, 1) >> (bits - kept)) / 2.0**kept


def integer_of(position: int, low: int, high: int, key: int) -> int:
    bits = 64 if high - low <= 2**32 else 128
    return low + (word_of(position, bits, key, 3) * (high - low) >> bits)


def normal_of(position: int, dtype: np.dtype, key: int) -> float:
    bits, kept = (64, 53) if dtype == FLOAT64 else (32, 31)
    x, y = (word_of(position - position % 2 + i, bits, key, 2) for i in (0, 1))
    whole = x >> (bits - kept)
    # With the small one of u and 1 - u, and an angle from the nearest quarter turn, Python's functions are right.
    missing = (2**kept - 1 - whole + 0.5) / 2.0**kept
    log = math.log1p(-missing) if missing < 0.5 else math.log((whole + 0.5) / 2.0**kept)
    quarter = ((y >> (bits - 3)) + 1) // 2
    angle = 2 * math.pi * ((y - (quarter << (bits - 2))) / 2.0**bits)
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][quarter % 4]
    return math.sqrt(-2 * log) * turned[position % 2]


# -- what is drawn ---------------------------------------------------------------------------------------


def test_published_blocks() -> None:
    for line in KNOWN_BLOCKS.split("\n")[1:-1]:
        numbers = [int(word, 16) for word in line.split()]
        counter = tuple(np.array([word], np.uint64) for word in numbers[:4])
        key = numbers[4] + (numbers[5] << 32)
        assert [int(word[0]) for word in philox(counter, key)] == numbers[6:]  # type: ignore[arg-type]


def test_blocks_are_numbered_from_any_block_on() -> None:
    low, high = blocks(2**32 - 2, 4, 2**64 - 3, 7)
    for place, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        c = block_of(2**32 - 2 + place, 2**64 - 3, 7)
        assert (a, b) == (c[0] + (c[1] << 32), c[2] + (c[3] << 32))


SEEDS = (0, 1, 2, 12345, 2**32, 2**64 - 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_uniform_is_made_of_the_words_stated(dtype: np.dtype) -> None:
    for seed in SEEDS:
        value = resolved(fc.random.uniform(41, dtype=dtype, seed=seed))
        assert value.dtype == dtype
        assert value.astype(np.float64).tolist() == [uniform_of(i, dtype, seed) for i in range(41)]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=lambda dtype: dtype.name)
def test_normal_is_made_of_the_words_stated(dtype: np.dtype) -> None:
    value = resolved(fc.random.normal(4001, dtype=dtype, seed=77))
    exact = np.array([normal_of(i, dtype, 77) for i in range(4001)])
    # In float64 the oracle is off by a unit or two itself.
    units = 5 if dtype == FLOAT32 else 7
    assert (np.abs(value - exact) <= units * np.spacing(np.abs(exact).astype(dtype))).all()


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 6), (-3, 9), (0, 2**32), (0, 2**32 + 1), (-(2**63), 2**63), (-(2**63), 7), (5, 2**62)]
)
def test_integers_are_made_of_the_words_stated(low: int, high: int) -> None:
    value = everywhere(fc.random.integers(67, low=low, high=high, seed=99))
    assert value.dtype == np.int64
    assert value.tolist() == [integer_of(i, low, high, 99) for i in range(67)]


@settings(max_examples=12)
@given(dtype=st.sampled_from(INTEGERS), seed=st.sampled_from(SEEDS), data=st.data())
def test_integers_of_any_dtype(dtype: np.dtype, seed: int, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    low = data.draw(st.integers(info.min, info.max))
    high = data.draw(st.integers(low + 1, info.max + 1))
    element = fc.random.integers(9, low=low, high=high, dtype=dtype, seed=seed)
    assert element.dtype == dtype
    for device in ("auto", "numpy"):
        assert resolved(element, device=device).tolist() == [integer_of(i, low, high, seed) for i in range(9)]


# -- equal bits --------------------------------------------------------------------------------------------


MAKERS: dict[str, Callable[..., fc.Element]] = {
    "uniform": lambda length, **kw: fc.random.uniform(length, seed=3, **kw),
    "between": lambda length, **kw: fc.random.uniform(length, low=-0.3, high=2.7, seed=3, **kw),
    "normal": lambda length, **kw: fc.random.normal(length, seed=3, **kw),
    "spread": lambda length, **kw: fc.random.normal(length, mean=5.5, std=0.1, seed=3, **kw),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(
            name,
            dtype,
            id=f"{name}-{dtype.name}",
            # Half formats round what is made in float32. A normal number of another spread is one more multiply-add.
            marks=()
            if dtype == FLOAT32
            else pytest.mark.slow
            if name == "normal" or (dtype, name) == (FLOAT64, "between")
            else pytest.mark.compiles,
        )
        for name in MAKERS
        for dtype in FLOATS
    ],
)
def test_bits_are_equal_everywhere(name: str, dtype: np.dtype) -> None:
    make = MAKERS[name]
    long = everywhere(make(1025, dtype=dtype))
    # A number is its seed's and its position's: a shorter stream is a piece of a longer one.
    for length in (0, 1, 1023):
        assert resolved(make(length, dtype=dtype)).tobytes() == long[:length].tobytes()
    if dtype in (FLOAT32, FLOAT64):
        # Half formats are made of the words of float32.
        wide = resolved(make(205, shape=(5,), dtype=dtype))
        assert wide.tobytes() == long.tobytes()


SHAPES: dict[np.dtype, list[tuple[int, ...]]] = {FLOAT32: [(17,), (2, 5, 3)], FLOAT64: [(3,)]}


@pytest.mark.parametrize("dtype", slow_but([FLOAT64], SHAPES), ids=lambda dtype: dtype.name)
def test_bits_are_equal_in_any_kernel(dtype: np.dtype) -> None:
    length = 67
    roots: list[fc.Element] = []
    for shape in SHAPES[dtype]:
        u = fc.random.uniform(length, shape=shape, dtype=dtype, seed=1)
        z = fc.random.normal(length, shape=shape, dtype=dtype, seed=1)
        roots += [z.sum(axis=0), z - u.max(axis=-1, keepdims=True), (u * z).sum(axis=1)]
    # Broadcasts: lanes of a row that are no neighbours, or all the same.
    a = fc.random.normal(length, shape=(4, 1, 3), dtype=dtype, seed=2)
    x = fc.source(np.arange(length * 60, dtype=dtype).reshape(length, 4, 5, 3))
    roots += [
        (x * a).sum(axis=(1, 3)),
        (x - a).max(axis=2),
        x + fc.random.uniform(length, shape=(1, 5, 1), dtype=dtype, seed=2),
    ]
    roots += [x.max(axis=(1, 2, 3)) * fc.random.normal(length, dtype=dtype, seed=4)]
    values = fc.resolve(*roots, progress=False)
    for options in ({"device": "numpy"}, {"strategy": fc.Strategy(batch_bytes=1 << 13)}):
        for root, value, other in zip(roots, values, fc.resolve(*roots, progress=False, **options), strict=True):
            assert np.asarray(value).tobytes() == np.asarray(other).tobytes(), f"{options} {root}"


def test_a_stream_drawn_once_is_one_stream() -> None:
    u = fc.random.uniform(1000, seed=8)
    assert not resolved(u - u).any()
    assert not resolved(u - fc.random.uniform(1000, seed=8)).any()
    assert resolved(u - fc.random.uniform(1000, seed=9)).any()


def test_a_section_is_a_piece_of_the_stream() -> None:
    for make in (fc.random.uniform, fc.random.normal):
        whole = resolved(make(257, shape=(3,), seed=8))
        assert np.array_equal(resolved(make(257, shape=(3,), seed=8)[100:200]), whole[100:200])
        assert np.array_equal(resolved(make(257, shape=(3,), seed=8)[::3]), whole[::3])
    assert resolved(fc.range(20)[5:9]).tolist() == [5, 6, 7, 8]


# -- seeds and structure -----------------------------------------------------------------------------------


def drawn(*elements: fc.Element) -> int:
    """How many different streams are drawn."""
    graph = build_graph(list(elements))
    return sum(bool(re.fullmatch(r"(uniform|normal|integers)\(seed=\d+\)(_\d+)?", node.name)) for node in graph.nodes)


def test_equal_seeds_merge() -> None:
    one, again, other = (fc.random.uniform(9, seed=seed) for seed in (1, 1, 2))
    assert drawn(one + again) == 1
    assert drawn(one + other) == 2
    assert drawn(one + fc.random.normal(9, seed=1)) == 2
    assert drawn(fc.random.uniform(9) + fc.random.uniform(9)) == 2
    unseeded = fc.random.uniform(9)
    assert drawn(unseeded + unseeded) == 1


def test_other_seeds_and_parameters_are_the_same_programs() -> None:
    def text(element: fc.Element) -> str:
        return str(element.plan().kernels[0].source)

    assert len({text(fc.random.normal(9, mean=3.5, std=7, seed=seed)) for seed in SEEDS}) == 1
    assert len({text(fc.random.integers(9, low=5, high=high, seed=high)) for high in (6, 7, 8, 99, 2**32)}) == 1
    assert fc.random.uniform(9, seed=5).hash == fc.random.uniform(8, seed=6).hash


def test_a_seed_that_is_drawn_is_shown_and_gives_the_numbers_again() -> None:
    for make in (
        lambda seed: fc.random.uniform(7, low=2, high=3, seed=seed),
        lambda seed: fc.random.normal(7, shape=(2,), std=3, seed=seed),
        lambda seed: fc.random.integers(7, low=2, high=30, dtype="int8", seed=seed),
    ):
        element, other = make(None), make(None)
        assert element.seed != other.seed
        assert f"seed={element.seed}" in repr(element)
        assert f"seed={element.seed})" in str(element)
        assert repr(make(element.seed)) == repr(element)
        assert resolved(make(element.seed)).tobytes() == resolved(element).tobytes()
    assert repr(fc.random.uniform(3, low=1, high=2, seed=4)) == "<Random uniform seed=4: float32(3,) stream>"


# -- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 3), (-1, 0), (1, 1.0625), (100, 101), (-5, 1e-3), (0, 1e-7), (-3e4, 3e4)]
)
def test_uniform_stays_below_its_bound(low: float, high: float, dtype: np.dtype) -> None:
    element = fc.random.uniform(20_000, low=low, high=high, dtype=dtype, seed=1)
    bottom, top = (np.array(bound, np.float64).astype(dtype) for bound in (low, high))
    value = resolved(element, device="numpy")
    assert (value >= bottom).all()
    assert (value < top).all()
    # Of dtypes with few numbers all are met.
    assert value.min() <= np.nextafter(bottom, top) + (top - bottom) / 1000
    assert value.max() >= np.nextafter(top, bottom) - (top - bottom) / 100


def test_the_smallest_intervals() -> None:
    tiny = np.float32(1e-45)
    assert not resolved(fc.random.uniform(999, high=tiny, seed=1)).any()
    one = np.nextafter(np.float32(1), np.float32(2))
    assert (resolved(fc.random.uniform(999, low=1, high=one, seed=1)) == 1).all()
    assert set(resolved(fc.random.integers(999, low=7, high=8, seed=1)).tolist()) == {7}


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=lambda dtype: dtype.name)
def test_normal_at_the_ends_of_its_words(dtype: np.dtype) -> None:
    word = np.dtype(f"u{dtype.itemsize}")
    top = int(np.iinfo(word).max)
    x = np.repeat(np.array([0, 1, top // 2, top - 1, top], word), 5)
    y = np.tile(np.array([0, top // 4 + 1, top // 2 + 1, top - top // 4, top], word), 5)
    even, odd = box_muller(x, y, dtype)
    kept = {4: 31, 8: 53}[dtype.itemsize]
    largest = math.sqrt(2 * math.log(2) * (kept + 1))
    assert np.isfinite([even, odd]).all()
    radius = np.hypot(even, odd)
    assert np.allclose(radius[:5], largest, rtol=1e-6)
    assert np.allclose(radius[-5:], math.sqrt(2.0**-kept), rtol=1e-6)
    # A quarter turn is exact: the cosine of none, the sine of one.
    assert [odd[0], even[1], odd[2], even[3]] == [0, 0, 0, 0]


# -- whether they look random --------------------------------------------------------------------------------


def kolmogorov_smirnov(values: np.ndarray, cumulative: Callable[[np.ndarray], np.ndarray]) -> float:
    """The largest distance between distributions, times the root of the count: above 1.95 once in 1000 times."""
    values = np.sort(values.astype(np.float64))
    reached = cumulative(values)
    steps = np.arange(len(values) + 1) / len(values)
    return float(max((steps[1:] - reached).max(), (reached - steps[:-1]).max()) * math.sqrt(len(values)))


def phi(x: np.ndarray) -> np.ndarray:
    return np.array([math.erfc(-number / math.sqrt(2)) / 2 for number in x.tolist()])


def check_moments(values: np.ndarray, mean: float, variance: float, fourth: float) -> None:
    """Mean and variance within four and a half standard errors."""
    count = values.size
    values = values.astype(np.float64).reshape(-1)
    assert abs(values.mean() - mean) < 4.5 * math.sqrt(variance / count)
    assert abs(((values - mean) ** 2).mean() - variance) < 4.5 * math.sqrt((fourth - variance**2) / count)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("seed", [0, 1, 2024])
def test_uniform_numbers_are_uniform(dtype: np.dtype, seed: int) -> None:
    values = resolved(fc.random.uniform(MANY, dtype=dtype, seed=seed))
    check_moments(values, 0.5, 1 / 12, 1 / 80)
    assert kolmogorov_smirnov(values, lambda x: x) < 1.95
    check_independence(values - 0.5, 1 / 12)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("seed", [0, 1, 2024])
def test_normal_numbers_are_normal(dtype: np.dtype, seed: int) -> None:
    values = resolved(fc.random.normal(MANY, dtype=dtype, seed=seed))
    check_moments(values, 0, 1, 3)
    assert abs((values.astype(np.float64) ** 3).mean()) < 4.5 * math.sqrt(15 / MANY)
    assert abs((values.astype(np.float64) ** 4).mean() - 3) < 4.5 * math.sqrt(96 / MANY)
    assert kolmogorov_smirnov(values[: MANY // 4], phi) < 1.95
    check_independence(values, 1)
    check_independence(values**2 - 1, 2)


def check_independence(centred: np.ndarray, variance: float) -> None:
    """No correlation with what stands a few places away."""
    centred = centred.astype(np.float64)
    for lag in (1, 2, 3, 4, 5, 8, 16, 64, 1024):
        products = centred[:-lag] * centred[lag:]
        assert abs(products.mean()) < 4.5 * variance / math.sqrt(len(products)), f"lag {lag}"


@pytest.mark.parametrize("count", [2, 6, 100, 1000])
def test_integers_are_equally_frequent(count: int) -> None:
    values = resolved(fc.random.integers(MANY, low=-3, high=count - 3, seed=5))
    seen = np.bincount(values + 3, minlength=count)
    chi_square = ((seen - MANY / count) ** 2).sum() / (MANY / count)
    degrees = count - 1
    # Wilson and Hilferty's normal approximation.
    z = ((chi_square / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    assert abs(z) < 4.5


def test_other_seeds_and_operations_are_unrelated() -> None:
    streams = [fc.random.uniform(MANY, seed=seed) for seed in (0, 1, 2, 2**32)]
    streams += [fc.random.uniform(MANY, dtype="float64", seed=7).astype("float32")]
    values = [resolved(stream) - 0.5 for stream in streams]
    values += [resolved(fc.random.normal(MANY, seed=0)) * math.sqrt(1 / 12)]
    for place, left in enumerate(values):
        for right in values[:place]:
            assert abs(np.mean(left * right, dtype=np.float64)) < 4.5 / 12 / math.sqrt(MANY)


def test_parameters_move_and_stretch() -> None:
    check_moments(resolved(fc.random.normal(MANY, mean=-4, std=0.5, seed=6)) * 2 + 8, 0, 1, 3)
    check_moments(resolved(fc.random.uniform(MANY, low=-4, high=4, seed=6)) / 8 + 0.5, 0.5, 1 / 12, 1 / 80)
    assert (resolved(fc.random.normal(9, mean=2.5, std=0, seed=6)) == 2.5).all()


# -- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fc.random.uniform(-1), "cannot take length="),
        (lambda: fc.random.uniform(2.5), "cannot take length="),
        (lambda: fc.random.uniform(True), "cannot take length="),
        (lambda: fc.random.uniform(2**62, shape=(2,)), "cannot count so many numbers"),
        (lambda: fc.random.uniform(3, shape=-1), "cannot take shape="),
        (lambda: fc.random.uniform(3, dtype="int32"), r"cannot draw numbers in this dtype[\s\S]*a dtype of floats"),
        (lambda: fc.random.uniform(3, dtype="complex64"), "is not supported"),
        (lambda: fc.random.uniform(3, low=1, high=1), "cannot draw between low and high"),
        (lambda: fc.random.uniform(3, low=1, high=1 + 1e-9), "cannot draw between low and high"),
        (lambda: fc.random.uniform(3, low=-3e38, high=3e38), "cannot draw between low and high"),
        (lambda: fc.random.uniform(3, high=math.inf), "cannot take high in float32"),
        (lambda: fc.random.uniform(3, low=math.nan), "cannot take low in float32"),
        (lambda: fc.random.uniform(3, high=1e39), "cannot take high in float32"),
        (lambda: fc.random.normal(3, std=-1), "cannot take a negative std"),
        (lambda: fc.random.normal(3, mean="much"), "cannot take mean in float32"),
        (lambda: fc.random.normal(3, mean=fc.range(3).mean()), "cannot take mean in float32"),
        (lambda: fc.random.normal(3, seed=-1), "cannot take seed="),
        (lambda: fc.random.normal(3, seed=2**64), "cannot take seed="),
        (lambda: fc.random.normal(3, seed=1.5), "cannot take seed="),
        (lambda: fc.random.normal(3, seed=False), "cannot take seed="),
        (lambda: fc.random.integers(3, low=2, high=2), r"cannot draw whole numbers[\s\S]*low=2, high=2"),
        (lambda: fc.random.integers(3, low=0.5, high=2), "cannot draw whole numbers of"),
        (lambda: fc.random.integers(3, low=0, high=300, dtype="uint8"), r"uint8[\s\S]*<= 256"),
        (lambda: fc.random.integers(3, low=-1, high=3, dtype="uint8"), "uint8"),
        (lambda: fc.random.integers(3, low=0, high=2**63 + 1), "int64"),
        (
            lambda: fc.random.integers(3, low=0, high=3, dtype="float32"),
            r"cannot draw numbers in this dtype[\s\S]*an integer dt",
        ),
        (lambda: fc.random.integers(3, low=0, high=3, dtype="bool"), "cannot draw numbers in this dtype"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(SpecError, match=text) as caught:
        make()
    assert "test_random.py" in str(caught.value)
