"""Spectra: Fourier transforms of frames, whose complex numbers are pairs of elements, and what they are folded to."""

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(27)
time = np.arange(200_000) / 8000  # seconds
sound = np.sin(2 * np.pi * 1000 * time) + 0.3 * np.sin(2 * np.pi * 2500 * time) + rng.standard_normal(200_000)
x = fc.source(sound.astype(np.float32), name="sound")

# Frames of 256 samples that overlap by half. Their mean power is a fold: Welch's method, in one reading.
frames = fc.window(x, 256, 128) * np.hanning(256).astype(np.float32)
real, imag = fc.fft.rfft(frames)  # one product gives both parts
power = (real**2 + imag**2).mean(axis=0)

# Cut into blocks, filtered and put together again: what is above 1500 Hz goes.
blocks = fc.cut(x, 1000)
spectrum = fc.fft.rfft(blocks)
low = (fc.fft.rfftfreq(1000, d=1 / 8000).value < 1500).astype(np.float32)
clean = fc.flatten(fc.fft.irfft((spectrum.real * low, spectrum.imag * low), 1000))

mean, filtered = fc.resolve(power, clean, progress=False)
hertz = fc.fft.rfftfreq(256, d=1 / 8000).value
loudest = hertz[np.argsort(mean)[::-1]]
print(f"loudest at {loudest[0]:.0f} Hz; the sound varies by {sound.std():.2f}, filtered by {filtered.std():.2f}")
assert loudest[0] == 1000

# NumPy's answers, and a file of complex numbers: a stack on the last axis has their bytes.
windows = np.lib.stride_tricks.sliding_window_view(sound, 256)[::128] * np.hanning(256)
np.testing.assert_allclose(mean, (np.abs(np.fft.rfft(windows)) ** 2).mean(axis=0), rtol=1e-4)
pairs = fc.stack(spectrum, axis=-1).resolve(progress=False)
np.testing.assert_allclose(pairs.view(np.complex64)[..., 0], np.fft.rfft(sound.reshape(-1, 1000)), atol=1e-2)
