"""Values of random programs: elements and, beside each, what an oracle apart from the project says; their data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowcompute.elements.element import Element
from flowcompute.spec import BOOL
from tests.properties.bounds import Bound


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """One value of a program.

    Attributes:
        element: the lazy element.
        bound: what the oracle says; whole array, the stream being axis 0.
        exact: whether every backend gives the same bits.
        after: whether it comes after a fold, and so cannot meet a stream.
    """

    element: Element
    bound: Bound
    exact: bool
    after: bool

    @property
    def stream(self) -> bool:
        return self.element.spec.is_stream

    @property
    def dtype(self) -> np.dtype:
        return self.bound.dtype


class Program:
    """Values in the order in which they were made, the roots, and the text that makes them."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.roots: list[Value] = []
        self.lines: list[str] = []
        self.length = 0

    def __repr__(self) -> str:
        names = ", ".join(f"v{self.values.index(root)}" for root in self.roots)
        return "\n".join(["", *self.lines, f"roots = ({names},)"])

    def add(self, line: str, element: Element, bound: Bound, exact: bool, *operands: Value) -> None:
        assert element.dtype == bound.dtype, f"{line}: dtype {element.dtype}, NumPy has {bound.dtype}"
        whole = tuple(size if size is not None else self.length for size in element.shape)
        assert whole == bound.shape, f"{line}: shape {whole}, NumPy has {bound.shape}"
        exact = exact and all(operand.exact for operand in operands)
        folded = any(operand.stream for operand in operands) and not element.spec.is_stream
        after = folded or any(operand.after for operand in operands)
        self.lines.append(f"v{len(self.values)} = {line}  # {element.spec}")
        self.values.append(Value(element, bound, exact, after))


def numbers(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Data of a dtype: "small" whole numbers, "spread" over magnitudes, or with "special" values in it."""
    if dtype == BOOL:
        return rng.random(shape) < (0.02 if kind == "special" else 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if kind == "spread" else (max(info.min, -9), 9)
        data = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
        if kind == "special" and data.size:
            places = rng.random(shape) < 0.1
            data = np.where(places, rng.choice(np.array([info.min, info.max, 0, 1], dtype), shape), data)
        return np.ascontiguousarray(data)
    data = rng.integers(-9, 9, shape).astype(np.float64)
    if kind == "spread":
        data = rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))
    result = data.astype(dtype)
    if kind == "special" and data.size:
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -3e-45, 65504, 1e30, -2e38], dtype=np.float64)
        with np.errstate(over="ignore"):
            result = np.where(rng.random(shape) < 0.08, rng.choice(odd, shape).astype(dtype), result)
    return np.ascontiguousarray(result)
