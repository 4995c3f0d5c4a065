"""Random programs over streams: every kind of operation, clocks of their own, several passes, streams that meet again."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements import Element
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, SUPPORTED_DTYPES
from tests.properties import bounds, stream_bounds
from tests.properties.bounds import Bound
from tests.properties.programs import Builder, Program, Value, numbers
from tests.properties.stream_bounds import known, moved

LENGTHS = (0, 1, 2, 3, 5, 8, 13, 31, 64, 65, 100, 129, 300, 1023, 1024, 1025, 2049, 3000)
ITEMS = ((), (), (), (3,), (3,), (1,), (2, 3))
MOST_NUMBERS = 20_000
DTYPES = (FLOAT32, FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT64, np.dtype("int32"), np.dtype("int8"), BOOL)


class Pieces:
    """Yields an array in pieces, anew each time; a generator, as users write them."""

    def __init__(self, array: np.ndarray, ends: list[int]) -> None:
        self.array, self.ends = array, ends

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
        assert len(declared) == len(bound.shape), f"{line}: shape {declared}, NumPy has {bound.shape}"
        fits = all(size in (None, real) for size, real in zip(declared, bound.shape, strict=True))
        assert fits, f"{line}: shape {declared}, NumPy has {bound.shape}"
        exact = exact and all(operand.exact for operand in operands)
        self.lines.append(f"v{len(self.values)} = {line}  # {element.spec}")
        # Results of one pass are operands of the next, so everything may meet everything.
        self.values.append(Value(element, bound, exact, False))
        self.length = max(self.length, bound.shape[0] if element.spec.is_stream else 0)


@st.composite
def stream_programs(draw: st.DrawFn, folder: Path, steps: int = 7) -> StreamProgram:
    """A program of one to three sources, its files in `folder`, with one to three roots."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="data"))
    program = StreamProgram()
    builder = StreamBuilder(draw, rng, program, draw(st.sampled_from(LENGTHS), label="length"), folder)
    for _ in range(draw(st.integers(1, 3), label="sources")):
        builder.source()
    with np.errstate(all="ignore"):
        for _ in range(draw(st.integers(1, steps), label="steps")):
            builder.step()
    last = len(program.values) - 1
    chosen = draw(st.lists(st.integers(0, last), max_size=2, unique=True), label="roots")
    program.roots = [program.values[i] for i in dict.fromkeys([last, *chosen])]
    return program


class StreamBuilder(Builder):
    """Draws operations along the stream beside those on items."""

    program: StreamProgram

    def __init__(
        self, draw: st.DrawFn, rng: np.random.Generator, program: StreamProgram, length: int, folder: Path
    ) -> None:
        super().__init__(draw, rng, program, draw(st.sampled_from(ITEMS), label="item"))
        self.length = length
        self.folder = folder

    def whole(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    # -- leaves -------------------------------------------------------------------------------

    def data(self, shape: tuple[int, ...], dtype: np.dtype | None = None) -> np.ndarray:
        wanted = self.pick([*DTYPES, *SUPPORTED_DTYPES]) if dtype is None else dtype
        kind = self.pick(["small", "spread", "special", "units"])
        if kind == "units" and wanted != BOOL:
            # Of these long products can be told exactly.
            units = [1, 1, 1, 2] if wanted.kind == "u" else [-1, 1, 1, 2] if wanted.kind == "i" else [-1, 1, 0.5, 2]
            return self.rng.choice(np.array(units), shape).astype(wanted)
        return numbers(self.rng, wanted, shape, "small" if kind == "units" else kind)

    def source(
        self, item: tuple[int, ...] | None = None, dtype: np.dtype | None = None, length: int | None = None
    ) -> Value:
        item = self.pick([self.item, self.item, *ITEMS]) if item is None else item
        array = self.data((self.length if length is None else length, *item), dtype)
        form = self.pick(["array", "array", "strided", "iterate", "file"])
        element, line = getattr(self, f"_{form}")(array)
        self.program.add(line, element, bounds.exactly(array), True)
        return self.program.values[-1]

    def _array(self, array: np.ndarray) -> tuple[Element, str]:
        return fc.source(array), f"fc.source({array.dtype.name}{array.shape})"

    def _strided(self, array: np.ndarray) -> tuple[Element, str]:
        room = np.zeros((2 * len(array) + 1, *array.shape[1:]), array.dtype)
        seen = room[1::2][::-1] if self.pick([True, False]) else np.moveaxis(np.zeros((*array.shape[1:], len(array)), array.dtype), -1, 0)
        seen[...] = array
        return fc.source(seen), f"fc.source({array.dtype.name}{array.shape}, strides {seen.strides})"

    def _iterate(self, array: np.ndarray) -> tuple[Element, str]:
        ends = sorted(self.draw(st.lists(st.integers(0, len(array)), max_size=3)))
        element = fc.iterate(Pieces(array, ends), shape=array.shape[1:], dtype=array.dtype)
        return element, f"fc.iterate({array.dtype.name}{array.shape} cut at {ends})"

    def _file(self, array: np.ndarray) -> tuple[Element, str]:
        parts = np.array_split(array, self.whole(1, 3))
        form = self.pick(["npy", "raw"])
        paths = []
        for part in parts:
            path = self.folder / f"{len(os.listdir(self.folder))}.{form}"
            if form == "npy":
                np.save(path, part.view(np.uint16) if part.dtype == BFLOAT16 else part)
            else:
                path.write_bytes(bytes(7) + part.tobytes())
            # What was written just now is not mapped.
            os.utime(path, (0, 0))
            paths.append(path)
        raw: dict[str, Any] = {"shape": array.shape[1:], "offset": 7} if form == "raw" else {}
        if form == "raw" or array.dtype == BFLOAT16:
            raw["dtype"] = array.dtype.name
        return fc.open(paths, **raw), f"fc.open({len(paths)} {form} of {array.dtype.name}{array.shape})"

    # -- partners -----------------------------------------------------------------------------

    def streams(self, fitting: Callable[[Value], bool] = lambda _: True) -> list[Value]:
        return [value for value in self.program.values if value.stream and fitting(value)]

    def partner(self, value: Value) -> Value:
        """Something to combine with a value: as long as it where both are streams."""
        fresh = self.pick(["resident", "source", "old", "old", "old", "old"])
        if fresh == "resident":
            return self.resident(value)
        if fresh == "source" and value.stream:
            return self.source(value.element.spec.shape, length=value.bound.shape[0])
        return self.pick([other for other in self.program.values if self.fits(other, value)])

    def fits(self, *values: Value) -> bool:
        """Whether streams are equally long, and residents of their rank as long as they are."""
        streams = [value for value in values if value.stream]
        if not streams:
            return True
        rank, length = streams[0].element.ndim, streams[0].bound.shape[0]
        same = all(value.element.ndim == rank and value.bound.shape[0] == length for value in streams)
        lined = all(v.element.ndim < rank or (v.element.ndim == rank and v.bound.shape[0] in (1, length)) for v in values if not v.stream)
        return same and lined

    def put(self, text: str, element: Any, bound: Bound, exact: bool = True, *operands: Value) -> Value | None:
        """Add `text`, in which `{0}` stands for the first operand's name; None where it is too large."""
        before = len(self.program.values)
        line = text.format(*(self.name(value) for value in operands))
        self.program.add(line, element, bound, exact, *operands)
        return self.program.values[-1] if len(self.program.values) > before else None

    def step(self) -> None:
        value = self.pick(self.program.values[-4:])
        forms = ITEM_FORMS if not value.stream else ITEM_FORMS + STREAM_FORMS
        getattr(self, f"_{self.pick(forms)}")(value)

    # -- the stream axis ----------------------------------------------------------------------

    def _section(self, value: Value, bounds_: tuple[int | None, int | None, int] | None = None) -> Value | None:
        length = value.bound.shape[0]
        lowest = -length - 2 if value.element.spec.length is not None else 0
        place = st.none() | st.integers(lowest, length + 2)
        part = slice(self.draw(place), self.draw(place), self.pick([1, 1, 2, 3, 7, 100])) if bounds_ is None else slice(*bounds_)
        text = ":".join("" if one is None else str(one) for one in (part.start, part.stop, part.step))
        return self.put(f"{{0}}[{text}]", value.element[part], moved(value.bound, lambda a: a[part]), True, value)

    def _window(self, value: Value, pad: Any = "any") -> Value | None:
        length = value.bound.shape[0]
        size = self.pick([1, 2, 3, 4, 5, 7, 12, min(length, 40) + 1])
        if pad == "any":
            pad = self.pick([None, "edge", "reflect", 0, 1])
        step = self.pick([1, 1, 1, 2, 3, 9]) if pad in (None, 0, 1) else 1
        ends = ((size - 1) // 2, size // 2) if pad is not None else (0, 0)
        bound = stream_bounds.windows(value.bound, size, step, *ends, pad)
        return self.put(f"fc.window({{0}}, {size}, {step}, pad={pad!r})", fc.window(value.element, size, step, pad=pad), bound, True, value)

    def _diff(self, value: Value) -> None:
        times = self.whole(0, 2)
        bound = value.bound
        for _ in range(times):
            bound = stream_bounds.differences(bound)
        self.put(f"fc.diff({{0}}, {times})", fc.diff(value.element, times), bound, True, value)

    def _convolve(self, value: Value) -> None:
        taps = self.data((self.pick([1, 2, 3, 5, 8]),), self.pick([value.dtype, FLOAT32]))
        mode = self.pick(["full", "same", "valid"])
        size = len(taps)
        try:
            element = fc.convolve(value.element, taps, mode)
        except SpecError:
            return
        ends = {"full": (size - 1, size - 1), "same": (size // 2, size - 1 - size // 2), "valid": (0, 0)}[mode]
        seen = stream_bounds.windows(value.bound, size, 1, *ends, None if mode == "valid" else 0)
        filter_ = bounds.exactly(taps[::-1].reshape(size, *[1] * (value.bound.value.ndim - 1)))
        text = f"fc.convolve({{0}}, {taps.dtype.name}({size},), {mode!r})"
        alone = value.bound.value.ndim == 1
        inner = self.wide(element.op_dtype if False else np.result_type(seen.dtype, taps.dtype))
        if alone:
            a, b = bounds.cast(seen, inner), bounds.cast(filter_, inner)
            bound = bounds.products(a, b, lambda x, y: np.sum(x * y, axis=1, dtype=np.result_type(x, y)), inner, size + 8)
            self.put(text, element, bounds.cast(bound, element.dtype), inner.kind in "iu", value)
            return
        dtype = np.result_type(seen.dtype, taps.dtype)
        product = bounds.binary("multiply", np.multiply, bounds.cast(seen, dtype), bounds.cast(filter_, dtype), dtype)
        total = bounds.reduced("sum", bounds.cast(product, self.summed(dtype)), (1,), False, self.summed(dtype), size + 8)
        self.put(text, element, bounds.cast(total, element.dtype), True, value)
