"""What random programs over streams begin with: arrays, files and iterables of many lengths and layouts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, SUPPORTED_DTYPES
from tests.properties import bounds
from tests.properties.bounds import Bound
from tests.properties.programs import Builder
from tests.properties.values import Program, Value, numbers

ITEMS = ((), (), (), (3,), (3,), (1,), (2, 3))
DTYPES = (FLOAT32, FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT64, np.dtype("int32"), np.dtype("int8"), BOOL)
MOST_NUMBERS = 20_000


class Pieces:
    """Yields an array in pieces, by a generator of its own each time."""

    def __init__(self, array: np.ndarray, ends: list[int]) -> None:
        self.array = array
        self.ends = ends

    def __iter__(self) -> Iterator[np.ndarray]:
        start = 0
        for end in [*self.ends, len(self.array)]:
            yield self.array[start:end]
            start = end


class StreamProgram(Program):
    """A program over streams of several lengths, some of which are unknown until it has run."""

    def add(self, line: str, element: Element, bound: Bound, exact: bool, *operands: Value) -> None:
        if bound.value.size > MOST_NUMBERS:
            return
        assert element.dtype == bound.dtype, f"{line}: dtype {element.dtype}, NumPy has {bound.dtype}"
        declared = element.shape
        fits = len(declared) == len(bound.shape) and all(
            size in (None, real) for size, real in zip(declared, bound.shape, strict=True)
        )
        assert fits, f"{line}: shape {declared}, NumPy has {bound.shape}"
        exact = exact and all(operand.exact for operand in operands)
        self.lines.append(f"v{len(self.values)} = {line}  # {element.spec}")
        # What one pass gives the next one takes, so everything may meet everything.
        self.values.append(Value(element, bound, exact, after=False))

    @property
    def longest(self) -> int:
        """Records of the longest stream."""
        return max([value.bound.shape[0] for value in self.values if value.stream], default=0)


class LeafBuilder(Builder):
    """Draws sources, residents, and partners for what there is.

    Args:
        length: records of most sources.
        folder: where files go.
    """

    def __init__(
        self, draw: st.DrawFn, rng: np.random.Generator, program: StreamProgram, length: int, folder: Path
    ) -> None:
        super().__init__(draw, rng, program, draw(st.sampled_from(ITEMS), label="item"))
        self.length = length
        self.folder = folder

    def whole(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def data(self, shape: tuple[int, ...], dtype: np.dtype | None = None) -> np.ndarray:
        wanted = self.pick([*DTYPES, *SUPPORTED_DTYPES]) if dtype is None else dtype
        kind = self.pick(["small", "spread", "special", "units"])
        if kind == "units" and wanted != BOOL:
            # Of these long products are exact.
            units = [1, 1, 1, 2] if wanted.kind == "u" else [-1, 1, 1, 2] if wanted.kind == "i" else [-1, 1, 0.5, 2]
            return self.rng.choice(np.array(units), shape).astype(wanted)
        return numbers(self.rng, wanted, shape, "small" if kind == "units" else kind)

    def source(
        self, item: tuple[int, ...] | None = None, dtype: np.dtype | None = None, length: int | None = None
    ) -> Value:
        item = self.pick([self.item, self.item, *ITEMS]) if item is None else item
        records = self.length if length is None else length
        form = self.pick(["array", "array", "strided", "iterate", "file", "generated", "blocks"])
        if form == "generated" and dtype is None:
            line, element, array = self._generated((records, *item))
        else:
            array = self.data((records, *item), dtype)
            line, element = getattr(self, f"_{'array' if form == 'generated' else form}")(array)
        self.program.add(line, element, bounds.exactly(array), True)
        return self.program.values[-1]

    def _generated(self, shape: tuple[int, ...]) -> tuple[str, Element, np.ndarray]:
        """A stream that is made, not read; what its numbers are is tested elsewhere."""
        length, *item = shape
        seed, wide = self.whole(0, 9), {"shape": tuple(item), "seed": self.whole(0, 9)}
        form = self.pick(["uniform", "normal", "integers", "range"] if not item else ["uniform", "normal", "integers"])
        if form == "range":
            element: Element = fc.range(seed - 5, seed - 5 + length, dtype=self.pick([None, "float32"]))
            array = np.arange(seed - 5, seed - 5 + length).astype(element.dtype)
            return f"fc.range({seed - 5}, {seed - 5 + length}, dtype={element.dtype.name!r})", element, array
        if form == "integers":
            wide |= {"low": -5, "high": 6, "dtype": self.pick(["int64", "int8"])}
        else:
            wide["dtype"] = self.pick(["float32", "float64", "bfloat16"])
        element = getattr(fc.random, form)(length, **wide)
        array = element.resolve(device="numpy", progress=False)
        return f"fc.random.{form}({length}, {', '.join(f'{k}={v!r}' for k, v in wide.items())})", element, array

    def _array(self, array: np.ndarray) -> tuple[str, Element]:
        return f"fc.source({array.dtype.name}{array.shape})", fc.source(array)

    def _blocks(self, array: np.ndarray) -> tuple[str, Element]:
        """The numbers as blocks of one number each, which every layout of items can have."""
        if array.dtype != FLOAT32 or array.ndim < 2 or not array.size:
            return self._array(array)
        raw = np.ascontiguousarray(array).view(np.uint8)
        return f"fc.dequantize(fc.source(uint8{raw.shape}), 'F32')", fc.dequantize(fc.source(raw), "F32")

    def _strided(self, array: np.ndarray) -> tuple[str, Element]:
        if self.pick([True, False]):
            seen = np.empty((2 * len(array), *array.shape[1:]), array.dtype)[::-2]
        else:
            seen = np.moveaxis(np.empty((*array.shape[1:], 3, len(array)), array.dtype)[..., 1, :], -1, 0)
        seen[...] = array
        return f"fc.source({array.dtype.name}{array.shape}, strides {seen.strides})", fc.source(seen)

    def _iterate(self, array: np.ndarray) -> tuple[str, Element]:
        ends = sorted(self.draw(st.lists(st.integers(0, len(array)), max_size=3)))
        element = fc.iterate(Pieces(array, ends), shape=array.shape[1:], dtype=array.dtype)
        return f"fc.iterate({array.dtype.name}{array.shape} in pieces that end at {ends})", element

    def _file(self, array: np.ndarray) -> tuple[str, Element]:
        form = self.pick(["npy", "raw"])
        paths = [self._written(part, form) for part in np.array_split(array, self.whole(1, 3))]
        how: dict[str, Any] = {"shape": array.shape[1:], "offset": 7} if form == "raw" else {}
        if form == "raw" or array.dtype == BFLOAT16:
            how["dtype"] = array.dtype.name
        return f"fc.open({len(paths)} {form} files of {array.dtype.name}{array.shape})", fc.open(paths, **how)

    def _written(self, part: np.ndarray, form: str) -> Path:
        path = self.folder / f"{len(os.listdir(self.folder))}.{form}"
        if form == "npy":
            np.save(path, part)
        else:
            path.write_bytes(bytes(7) + part.tobytes())
        # A file that was written just now is not mapped.
        os.utime(path, (0, 0))
        return path

    def partner(self, value: Value) -> Value:
        """Something to combine with a value; as long as it where both are streams."""
        fresh = self.pick(["resident", "source", "old", "old", "old", "old"])
        if fresh == "resident":
            return self.resident(value)
        if fresh == "source" and value.stream:
            return self.source(value.element.spec.shape, length=value.bound.shape[0])
        return self.pick([other for other in self.program.values if self.fits(other, value)])

    def fits(self, *values: Value) -> bool:
        """Whether streams are equally long, and residents of their rank too."""
        streams = [value for value in values if value.stream]
        if not streams:
            return True
        rank, length = streams[0].element.ndim, streams[0].bound.shape[0]
        return all(
            (value.element.ndim == rank and value.bound.shape[0] == length)
            if value.stream
            else value.element.ndim < rank or (value.element.ndim == rank and value.bound.shape[0] in (1, length))
            for value in values
        )

    def put(self, text: str, element: Any, bound: Bound, exact: bool, *operands: Value) -> Value | None:
        """Add a value; `{0}` in the text is the first operand's name. None where it is too large."""
        before = len(self.program.values)
        self.program.add(text.format(*map(self.name, operands)), element, bound, exact, *operands)
        return self.program.values[-1] if len(self.program.values) > before else None
