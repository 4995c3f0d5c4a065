"""Fourier transforms of items, public as `fc.fft`.

Complex values are pairs of elements, `(real, imag)`: all dtypes are real. `fc.stack([real, imag], axis=-1)` has the
bytes of NumPy's complex numbers, so a file of it is one of these: `np.load("y.npy").view("complex64")[..., 0]`.
"""

from flowcompute.elements.fft.fourier import (
    ComplexPair,
    fft,
    fftfreq,
    fftshift,
    ifft,
    ifftshift,
    irfft,
    rfft,
    rfftfreq,
)

__all__ = [
    "ComplexPair",
    "fft",
    "fftfreq",
    "fftshift",
    "ifft",
    "ifftshift",
    "irfft",
    "rfft",
    "rfftfreq",
]


def __dir__() -> list[str]:
    return __all__
