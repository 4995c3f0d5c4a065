"""`fc.fft`: NumPy's values within the bound that is stated, for every kind of length, dtype, axis and norm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.spec import BFLOAT16, FLOAT32, FLOAT64
from tests.properties.cases import cases
from tests.support.slow import slow_but

DEVICES = ("numpy", pytest.param("cpu", marks=pytest.mark.compiles))
BOUND_EPS = 16
"""What the docstring of `fc.fft.fft` says."""
# One product; two levels; primes and others without small factors, which are convolved with a chirp.
LENGTHS = [1, 2, 3, 5, 16, 127, 255, 256, 258, 512, 1000, 1024, 4000, 4095, 4096, 257, 263, 514, 2053, 4093]
COMPILED = [5, 256, 258, 4096, 263]
NORMS = ("backward", "ortho", "forward")


def values_of(*elements: Any, device: str = "numpy", **options: Any) -> tuple[Any, ...]:
    return fc.run(*elements, device=device, progress=False, **options).values


def close(value: Any, want: np.ndarray, dtype: Any) -> None:
    """Check the bound: the error in the 2-norm of each transform, by that of the result."""
    assert np.shape(value) == np.shape(want)
    error = np.linalg.norm(np.asarray(value) - want, axis=-1)
    assert (error <= BOUND_EPS * np.finfo(dtype).eps * np.linalg.norm(want, axis=-1)).all()


def whole(pair: Any) -> np.ndarray:
    real, imag = pair
    assert real.dtype == imag.dtype
    return real.astype("f8") + 1j * imag.astype("f8")


def signals(n: int, dtype: str) -> np.ndarray:
    """Noise, a constant, impulses, the highest frequency, a wave of one coefficient, and numbers of very unequal size."""
    rng, at = np.random.default_rng(n), np.arange(n)
    impulse = (at == n // 3).astype(float)
    wave = np.cos(2 * np.pi * at * (n // 5) / n)
    made = [rng.standard_normal(n), np.ones(n), impulse, (-1.0) ** at, wave, 10.0 ** rng.uniform(-12, 12, n)]
    return np.stack(made).astype(dtype)


@pytest.mark.parametrize("dtype", slow_but(["f4"], ["f4", "f8"]))
@pytest.mark.parametrize(
    ("n", "device"),
    [*((n, "numpy") for n in LENGTHS), *(pytest.param(n, "cpu", marks=pytest.mark.compiles) for n in COMPILED)],
)
def test_every_length_keeps_its_bound(n: int, dtype: str, device: str) -> None:
    array, other = signals(n, dtype), signals(n, dtype)[::-1]
    x, y = fc.source(array), fc.source(np.ascontiguousarray(other))
    z = array.astype("f8") + 1j * other.astype("f8")
    made = [*fc.fft.fft(x), *fc.fft.fft((x, y)), *fc.fft.ifft((x, y)), *fc.fft.rfft(x)]
    values = values_of(*made, device=device)
    wanted = [np.fft.fft(z.real), np.fft.fft(z), np.fft.ifft(z), np.fft.rfft(z.real)]
    for place, want in enumerate(wanted):
        close(whole(values[2 * place : 2 * place + 2]), want, dtype)
    m = n // 2 + 1
    back = values_of(fc.fft.irfft((x[:, :m], y[:, :m]), n), device=device)[0]
    close(back, np.fft.irfft(z[:, :m], n), dtype)
    small = fc.Strategy(batch_bytes=1)
    again = values_of(*made, device=device, strategy=small)
    assert [one.tobytes() for one in again] == [one.tobytes() for one in values]


def test_the_longest() -> None:
    for n in (1 << 15, 32749):
        array = signals(n, "f4")[:2]
        close(whole(values_of(*fc.fft.fft(fc.source(array)))), np.fft.fft(array.astype("f8")), "f4")


@cases(60)
@given(
    shape=st.tuples(*[st.integers(1, 5)] * 3),
    n=st.none() | st.integers(1, 9),
    axis=st.sampled_from([1, 2, -1, -2, 0]),
    norm=st.sampled_from(NORMS),
    unknown=st.booleans(),
)
def test_axes_lengths_and_norms(shape: tuple[int, ...], n: int | None, axis: int, norm: str, unknown: bool) -> None:
    rng = np.random.default_rng(sum(shape))
    a, b = rng.standard_normal((2, *shape))
    if axis == 0:
        x: Any = fc.constant(a)
        y: Any = fc.constant(b)
    elif unknown:
        x, y = (fc.iterate([one], shape=shape[1:], dtype="f8") for one in (a, b))
    else:
        x, y = fc.source(a), fc.source(b)
    z = a + 1j * b
    pairs = [
        (fc.fft.fft((x, y), n, axis, norm), np.fft.fft(z, n, axis, norm)),
        (fc.fft.ifft((x, y), n, axis, norm), np.fft.ifft(z, n, axis, norm)),
        (fc.fft.ifft(x, n, axis, norm), np.fft.ifft(a, n, axis, norm)),
        (fc.fft.rfft(x, n, axis, norm), np.fft.rfft(a, n, axis, norm)),
    ]
    for made, want in pairs:
        assert made.real.shape[1:] == want.shape[1:]
        assert np.allclose(whole(values_of(*made)), want, atol=1e-12)
    if n is not None or shape[axis] > 1:
        for made, given in ((fc.fft.irfft((x, y), n, axis, norm), z), (fc.fft.irfft(x, n, axis, norm), a)):
            want = np.fft.irfft(given, n, axis, norm)
            value = values_of(made)[0]
            assert value.shape == want.shape
            assert np.allclose(value, want, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "given"), [(1000, 700), (1021, 700), (300, 700), (257, 100), (512, 512)])
def test_long_axes_are_cut_and_filled_up(n: int, given: int, device: str) -> None:
    array = signals(given, "f8")[:2]
    x = fc.source(array)
    made = [*fc.fft.fft(x, n), *fc.fft.rfft(x, n), fc.fft.irfft(x, n)]
    values = values_of(*made, device=device)
    close(whole(values[:2]), np.fft.fft(array, n), "f8")
    close(whole(values[2:4]), np.fft.rfft(array, n), "f8")
    close(values[4], np.fft.irfft(array, n), "f8")


@pytest.mark.parametrize(
    ("given", "made"),
    [("?", FLOAT64), ("u1", FLOAT64), ("i8", FLOAT64), ("f2", FLOAT32), (BFLOAT16, FLOAT32), ("f4", FLOAT32),
     ("f8", FLOAT64)],
)  # fmt: skip
def test_dtypes(given: Any, made: np.dtype) -> None:
    array = np.array([[0, 1, 1, 0], [1, 1, 0, 0]]).astype(given)
    pair = fc.fft.fft(fc.source(array))
    assert pair.real.dtype == pair.imag.dtype == fc.fft.irfft(fc.source(array)).dtype == made
    assert np.allclose(whole(values_of(*pair)), np.fft.fft(array.astype("f8")), atol=1e-6)
    assert fc.fft.fft((fc.source(array), np.zeros((2, 4), "f8"))).real.dtype == FLOAT64


def test_there_and_back_and_power() -> None:
    array = signals(4096, "f4")[:1]
    x = fc.source(array)
    spectrum = fc.fft.rfft(x)
    power, back = values_of(spectrum.real**2 + spectrum.imag**2, fc.fft.irfft(spectrum))
    assert np.allclose(power, np.abs(np.fft.rfft(array)) ** 2, rtol=1e-3, atol=1e-2)
    assert np.allclose(back, array, atol=1e-5)
    assert spectrum._fields == ("real", "imag")


def test_windows_of_a_stream_and_a_fold(tmp_path: Path) -> None:
    """Welch's method: the mean power of overlapping windows of a long signal, gone on with from a checkpoint."""
    signal = np.random.default_rng(8).standard_normal(6000) + np.sin(np.arange(6000) * 0.5)
    np.save(tmp_path / "x.npy", signal)
    frames = fc.window(fc.open(tmp_path / "x.npy"), 64, 32)
    pair = fc.fft.rfft(frames * np.hanning(64))
    made = (pair.real**2 + pair.imag**2).mean(axis=0)
    windows = np.lib.stride_tricks.sliding_window_view(signal, 64)[::32] * np.hanning(64)
    want = (np.abs(np.fft.rfft(windows)) ** 2).mean(axis=0)
    small, kept = fc.Strategy(batch_bytes=1 << 12), tmp_path / "kept"
    run = fc.start(made, device="numpy", progress=False, strategy=small, on_batch=fc.Run.freeze, checkpoint=kept)
    with pytest.raises(fc.RunError, match="was frozen"):
        run.wait()
    for value in (fc.thaw(kept).run(device="numpy", progress=False).values[0], *values_of(made, device="cpu")):
        assert np.allclose(value, want)


def test_a_file_of_pairs_is_one_of_complex_numbers(tmp_path: Path) -> None:
    array = signals(16, "f4")
    fc.run(fc.stack(fc.fft.rfft(fc.source(array)), axis=-1) >> fc.save(tmp_path / "y.npy"), progress=False)
    found = np.load(tmp_path / "y.npy").view("complex64")[..., 0]
    close(found, np.fft.rfft(array.astype("f8")), "f4")


@given(n=st.integers(1, 40), d=st.floats(0.01, 100), dtype=st.sampled_from([None, "f4", "f8"]))
def test_frequencies(n: int, d: float, dtype: Any) -> None:
    for ours, theirs in ((fc.fft.fftfreq, np.fft.fftfreq), (fc.fft.rfftfreq, np.fft.rfftfreq)):
        want = theirs(n, d).astype(dtype or "f8")
        assert ours(n, d=d, dtype=dtype).value.tobytes() == want.tobytes()


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("shape", [(3, 1), (3, 4), (2, 5, 4), (2, 0, 3)])
def test_shifts(shape: tuple[int, ...], device: str) -> None:
    array = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    items = tuple(range(1, len(shape)))
    x, known = fc.source(array), fc.constant(array)
    made = [
        fc.fft.fftshift(x, axes=items),
        fc.fft.ifftshift(x, axes=-1),
        fc.fft.fftshift(known),
        fc.fft.ifftshift(known),
        np.fft.fftshift(x, 1),
    ]
    wanted = [
        np.fft.fftshift(array, axes=items),
        np.fft.ifftshift(array, axes=-1),
        np.fft.fftshift(array),
        np.fft.ifftshift(array),
        np.fft.fftshift(array, 1),
    ]
    for value, want in zip(values_of(*made, device=device), wanted, strict=True):
        assert value.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: fc.fft.fft(x, axis=0), ValueError, r"an axis of items(.|\n)*fc\.cut"),
        (lambda x: fc.fft.fft(x[:, 0]), ValueError, "an axis of items"),
        (lambda x: fc.fft.fft(2.0), ValueError, "an axis of items"),
        (lambda x: fc.fft.fft(x, axis=5), IndexError, "axis 5"),
        (lambda x: fc.fft.fft(x, 0), ValueError, "n="),
        (lambda x: fc.fft.fft(x, 1 << 16), ValueError, "n="),
        (lambda x: fc.fft.fft(x, 2.5), TypeError, "n="),
        (lambda x: fc.fft.fft(x[:, :0]), ValueError, "transforms of 1 to 32768"),
        (lambda x: fc.fft.irfft(x[:, :1]), ValueError, "transforms of 1 to 32768"),
        (lambda x: fc.fft.fft(x, norm="both"), ValueError, "norm="),
        (lambda x: fc.fft.fft((x, x[:, :2])), ValueError, "parts of different shape"),
        (lambda x: fc.fft.fft((x, 1.0)), ValueError, "parts of different shape"),
        (lambda x: fc.fft.fft((x, x, x)), TypeError, "a pair"),
        (lambda x: fc.fft.fft(()), TypeError, "a pair"),
        (lambda x: fc.fft.rfft((x, x)), ValueError, "fc.fft.fft"),
        (lambda x: fc.fft.fft(np.ones((2, 3), complex)), TypeError, "complex"),
        (lambda x: fc.fft.fftshift(x), ValueError, "axes="),
        (lambda x: fc.fft.fftfreq(0), ValueError, "n="),
        (lambda x: fc.fft.fftfreq(3, d=0), ValueError, "a finite spacing"),
        (lambda x: np.fft.fft(x), TypeError, r"fc\.fft\.fft, whose complex numbers are pairs"),
    ],
)
def test_refusals(call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(fc.SpecError, match=text) as caught:
        call(fc.source(np.ones((6, 4), "f4")))
    assert isinstance(caught.value, kind)
