"""What must hold of the values of a random program, whoever computed them."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute as fc
from flowcompute.spec import is_float
from tests.properties.values import Program, Value


def resolve(program: Program, **options: Any) -> list[np.ndarray]:
    """The roots' values, read in one go."""
    values = fc.resolve(*(root.element for root in program.roots), progress=False, **options)
    return [np.asarray(value) for value in (values if len(program.roots) > 1 else (values,))]


def check_against_numpy(program: Program, results: list[np.ndarray]) -> None:
    """Shapes and dtypes as NumPy's, and every number within the error that the oracle allows."""
    for root, result in zip(program.roots, results, strict=True):
        made, wanted = (result.dtype, result.shape), (root.dtype, root.bound.shape)
        assert made == wanted, f"{root.element!r} is {made}, expected {wanted}{program!r}"
        _report(program, root, ~root.bound.holds(result), result, root.bound.value, root.bound.error)


def check_equal(program: Program, results: list[np.ndarray], reference: list[np.ndarray]) -> None:
    """Equal to the reference where every backend must give the same number, the sign of zero included."""
    for root, result, wanted in zip(program.roots, results, reference, strict=True):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        if root.exact:
            _report(program, root, ~same_numbers(result, wanted), result, wanted)


def check_same_bits(program: Program, results: list[np.ndarray], others: list[np.ndarray]) -> None:
    """The very same bytes."""
    for root, result, other in zip(program.roots, results, others, strict=True):
        size = result.dtype.itemsize
        pair = [np.frombuffer(array.tobytes(), np.uint8).reshape(*array.shape, size) for array in (result, other)]
        _report(program, root, np.any(pair[0] != pair[1], axis=-1), result, other)


def same_numbers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each number whether both are equal, NaN to NaN and -0 only to -0."""
    if not is_float(a.dtype):
        return np.asarray(a == b)
    wide = [array.astype(np.float64) for array in (a, b)]
    nan = [np.isnan(array) for array in wide]
    return np.asarray((nan[0] & nan[1]) | (wide[0] == wide[1]) & (np.signbit(wide[0]) == np.signbit(wide[1])))


def _report(program: Program, root: Value, wrong: np.ndarray, got: np.ndarray, *wanted: np.ndarray) -> None:
    if not wrong.any():
        return
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    name = f"v{next(i for i, value in enumerate(program.values) if value is root)}"
    limit = f" +- {wanted[1][place]}" if len(wanted) > 1 else ""
    raise AssertionError(
        f"{name} = {root.element!r}: {int(wrong.sum())} of {wrong.size} numbers are wrong; "
        f"at {place} {got[place]!r}, expected {wanted[0][place]!r}{limit}{program!r}"
    )
