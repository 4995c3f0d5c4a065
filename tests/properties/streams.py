"""Random programs over streams: clocks of their own, several passes, and streams that part and meet again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError
from flowcompute.spec import BOOL, FLOAT64, INT64, is_float
from tests.properties import bounds, stream_bounds
from tests.properties.programs import ROW_STEPS
from tests.properties.stream_bounds import known, moved, single
from tests.properties.stream_folds import STATISTICS, FoldBuilder
from tests.properties.stream_leaves import MOST_NUMBERS, StreamProgram
from tests.properties.values import Value

LENGTHS = (0, 1, 2, 3, 5, 8, 13, 31, 64, 65, 100, 129, 300, 1023, 1024, 1025, 2049, 3000)


@st.composite
def stream_programs(draw: st.DrawFn, folder: Path, steps: int = 7, first: str | None = None) -> StreamProgram:
    """A program of one to three sources, its files in `folder`, with one to three roots; `first` forces an operation."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="data"))
    program = StreamProgram()
    builder = StreamBuilder(draw, rng, program, draw(st.sampled_from(LENGTHS), label="length"), folder)
    for _ in range(draw(st.integers(1, 3), label="sources")):
        builder.source()
    with np.errstate(all="ignore"):
        if first is not None:
            builder.apply(first)
        for _ in range(draw(st.integers(1, steps), label="steps")):
            builder.step()
    last = len(program.values) - 1
    chosen = draw(st.lists(st.integers(0, last), max_size=2, unique=True), label="roots")
    program.roots = [program.values[i] for i in dict.fromkeys([last, *chosen])]
    return program


ON_ITEMS = (
    "unary", "binary", "binary", "scalar", "where", "cast", "reduce", "fold", "product", "view", "view", "function",
)  # fmt: skip
ALONG = (
    "section", "window", "window", "moving", "diff", "convolve", "select", "select", "cut", "cut", "emit", "flatten",
    "repeat", "end_to_end", "end_to_end", "together", "scan", "scan", "statistic", "statistic", "fold",
    "spool",
)  # fmt: skip
MEETING = ("lag", "lag", "detrend", "masked", "centred", "halves", "spread_again", "rejoined")


FORMS = sorted({*ON_ITEMS, *ALONG, *MEETING} - {"statistic"} | set(STATISTICS))
"""Every kind of operation."""


class StreamBuilder(FoldBuilder):
    """Draws operations along the stream beside those on items."""

    def step(self) -> None:
        value = self.pick(self.program.values[-4:])
        self.apply(self.pick((*ON_ITEMS, *ALONG, *MEETING) if value.stream else ON_ITEMS), value)

    def apply(self, form: str, value: Value | None = None) -> None:
        """Draw an operation of a kind, on the latest source where none is given."""
        getattr(self, f"_{form}")(self.program.values[-1] if value is None else value)

    # -- items seen in another way --------------------------------------------------------------

    def _view(self, value: Value) -> None:
        lead = int(value.stream)
        axes = list(range(lead, value.bound.value.ndim))
        if not axes:
            return
        form = self.pick(["index", "index", "take", "reshape", "permute", "flip"])
        if form == "index":
            self._basic(value, lead)
        elif form == "take":
            axis = self.pick(axes)
            size = value.bound.shape[axis]
            if not size:
                return
            self._take(value, axis)
        elif form == "reshape":
            shape = self.pick([(-1,), (1, -1), (-1, 1)])
            if 0 in value.bound.shape[lead:]:
                return
            lengths = ([-1] if value.element.spec.length is None else [-1, value.bound.shape[0]]) if lead else []
            whole = (*([self.pick(lengths)] if lead else []), *shape)
            size = (value.bound.shape[0],) if lead else ()
            numbers = int(np.prod(value.bound.shape[lead:]))
            made = (*size, *(numbers if one == -1 else one for one in shape))
            self.put(f"fc.reshape({{0}}, {whole})", fc.reshape(value.element, whole),
                     moved(value.bound, lambda a: a.reshape(made)), True, value)  # fmt: skip
        elif form == "permute":
            order = (*range(lead), *self.draw(st.permutations(axes)))
            self.put(f"fc.permute_dims({{0}}, {order})", fc.permute_dims(value.element, order),
                     moved(value.bound, lambda a: a.transpose(order)), True, value)  # fmt: skip
        else:
            axis = self.pick(axes)
            self.put(f"fc.flip({{0}}, {axis})", fc.flip(value.element, axis),
                     moved(value.bound, lambda a: np.flip(a, axis)), True, value)  # fmt: skip

    def _take(self, value: Value, axis: int) -> None:
        """What stands at given places of an axis, or at places that a fold has found."""
        size = value.bound.shape[axis]
        folded = [
            v
            for v in self.program.values
            if not v.stream
            and v.element.ndim == 1
            and v.dtype.kind in "iu"
            and known(v.bound)
            and v.bound.shape[0] < 20
        ]
        if folded and self.pick([True, False]):
            of = self.pick(folded)
            self._apply_binary(
                "remainder", of.element, size, (of,), (of.bound, bounds.exactly(np.asarray(size, of.dtype)))
            )
            places = self.program.values[-1]
            where, element, name = places.bound.value.astype(np.int64), places.element, self.name(places)
        else:
            where = np.array(self.draw(st.lists(st.integers(-size, size - 1), max_size=4)), np.int64)
            element, name = where, f"{where.tolist()}"
        self.put(f"fc.take({{0}}, {name}, axis={axis})", fc.take(value.element, element, axis=axis),
                 moved(value.bound, lambda a: np.take(a, where, axis=axis)), True, value)  # fmt: skip

    def _function(self, value: Value) -> None:
        """A host function: it sees batches as they come."""
        lead = int(value.stream)
        shape = (*value.bound.shape[lead:], 2)
        element = fc.host(lambda a: np.stack([a, a], axis=-1)[..., ::-1], value.element, shape=shape, dtype=value.dtype)
        bound = moved(value.bound, lambda a: np.stack([a, a], axis=-1))
        self.put("fc.host(twice, {0})", element, bound, True, value)

    def _basic(self, value: Value, lead: int) -> None:
        keys: list[Any] = [slice(None)] * lead
        for size in value.bound.shape[lead:]:
            if self.pick([False, False, False, True]):
                keys.append(None)
            part = slice(*self.draw(st.tuples(*[st.none() | st.integers(-4, 4)] * 2)), self.pick([None, 1, -1, 2, -2]))
            keys.append(self.whole(-size, size - 1) if size and self.pick([True, False]) else part)
        key = tuple(keys)
        text = ", ".join(f"{k.start}:{k.stop}:{k.step}" if isinstance(k, slice) else str(k) for k in key)
        self.put(f"{{0}}[{text}]", value.element[key], moved(value.bound, lambda a: a[key]), True, value)

    # -- the stream axis ------------------------------------------------------------------------

    def _section(self, value: Value) -> None:
        length = value.bound.shape[0]
        places = st.none() | st.integers(0 if value.element.spec.length is None else -length - 2, length + 2)
        self.section(value, self.draw(places), self.draw(places), self.pick([1, 1, 2, 3, 7, 100]))

    def section(self, value: Value, start: int | None, stop: int | None, step: int = 1) -> Value | None:
        part = slice(start, stop, step)
        text = f"{{0}}[{'' if start is None else start}:{'' if stop is None else stop}:{step}]"
        return self.put(text, value.element[part], moved(value.bound, lambda a: a[part]), True, value)

    def _window(self, value: Value) -> None:
        size = self.pick([1, 2, 3, 4, 5, 7, 12, min(value.bound.shape[0], 40) + 1])
        self.window(value, size, self.pick([1, 1, 1, 2, 3, 9]), self.pick([None, "edge", "reflect", 0, 1]))

    def window(self, value: Value, size: int, step: int, pad: Any) -> Value | None:
        if value.bound.value.size * size > MOST_NUMBERS:
            return None
        ends = ((size - 1) // 2, size // 2) if pad is not None else (0, 0)
        bound = stream_bounds.windows(value.bound, size, step, *ends, pad)
        element = fc.window(value.element, size, step, pad=pad)
        return self.put(f"fc.window({{0}}, {size}, {step}, pad={pad!r})", element, bound, True, value)

    def _moving(self, value: Value) -> None:
        """A reduction of each window."""
        seen = self.window(
            value, self.pick([1, 2, 5, 8]), self.pick([1, 1, 3]), self.pick([None, "edge", "reflect", 2])
        )
        if seen is not None:
            self._reduction(seen, self.pick(["sum", "mean", "max", "min", "var", "argmax", "any"]), (1,))

    def _diff(self, value: Value) -> None:
        times, bound = self.whole(0, 2), value.bound
        for _ in range(times):
            bound = stream_bounds.differences(bound)
        self.put(f"fc.diff({{0}}, {times}, axis=0)", fc.diff(value.element, times, axis=0), bound, True, value)

    def _convolve(self, value: Value) -> None:
        size, mode = self.pick([1, 2, 3, 5, 8]), self.pick(["full", "same", "valid"])
        dtype = self.pick([value.dtype, FLOAT64]) if value.dtype != BOOL else INT64
        if value.bound.value.size * size > MOST_NUMBERS:
            return
        taps = self.data((size,), dtype)
        ends = {"full": (size - 1, size - 1), "same": (size // 2, size - 1 - size // 2), "valid": (0, 0)}[mode]
        seen = stream_bounds.windows(value.bound, size, 1, *ends, None if mode == "valid" else 0)
        bound = stream_bounds.filtered(bounds.cast(seen, dtype), bounds.exactly(taps[::-1]), ROW_STEPS)
        element = fc.convolve(value.element, taps, mode)
        exact = bool(value.element.spec.shape) or not is_float(dtype)
        self.put(f"fc.convolve({{0}}, {dtype.name}({size},), {mode!r})", element,
                 bounds.cast(bound, element.dtype), exact, value)  # fmt: skip

    def mask(self, length: int) -> Value | None:
        """A stream of bools that the oracle is sure of, or a resident mask."""
        vectors = [v for v in self.program.values if v.stream and v.bound.shape == (length,) and known(v.bound)]
        ready = [v for v in vectors if v.dtype == BOOL]
        form = self.pick(["ready", "compare", "compare", "source", "resident"])
        if form == "ready" and ready:
            return self.pick(ready)
        if form == "compare" and len(vectors) > len(ready):
            of = self.pick([v for v in vectors if v.dtype != BOOL])
            self._apply_binary("greater_equal", of.element, 1, (of,), (of.bound, bounds.exactly(np.ones((), of.dtype))))
            return self.program.values[-1]
        if form == "resident":
            array = self.rng.random(length) < self.pick([0.0, 0.1, 0.5, 1.0])
            return self.put(f"fc.constant(bool({length},))", fc.constant(array), bounds.exactly(array), True)
        return self.source((), BOOL, length)

    def _select(self, value: Value) -> None:
        mask = self.mask(value.bound.shape[0])
        if mask is not None:
            self.select(value, mask)

    def select(self, value: Value, mask: Value) -> Value | None:
        bound = moved(value.bound, lambda a: a[mask.bound.value])
        return self.put("{0}[{1}]", value.element[mask.element], bound, True, value, mask)

    def _cut(self, value: Value) -> None:
        length = value.bound.shape[0]
        every = self.pick([1, 2, 3, 7, 64, length + 1])
        self.cut(value, every, self.pick(["drop", "pad"] + ["error"] * (length % every == 0)))

    def cut(self, value: Value, every: int, tail: Any) -> Value | None:
        if value.bound.value.size + every > MOST_NUMBERS:
            return None
        fill = self.pick([0, 1])
        element = fc.cut(value.element, every, tail=tail, fill=fill)
        bound = stream_bounds.runs(value.bound, every, tail, fill)
        return self.put(f"fc.cut({{0}}, {every}, tail={tail!r}, fill={fill})", element, bound, True, value)

    def _emit(self, value: Value) -> None:
        every, name = self.pick([1, 2, 5, 64, 2000]), self.pick(["sum", "prod", "min", "max", "any", "all"])
        element = getattr(fc, name)(fc.cut(value.element, every, tail="emit"), axis=1)
        x = value.bound
        if name in ("any", "all"):
            x = bounds.cast(x, BOOL)
        elif name in ("sum", "prod"):
            x = bounds.cast(x, stream_bounds.summed(x.dtype))
        parts = [
            bounds.reduced(name, moved(x, lambda a: a[i : i + every]), (0,), False, x.dtype, ROW_STEPS)  # noqa: B023
            for i in range(0, len(x.value), every)
        ]
        empty = moved(x, lambda a: a[:0])
        bound = stream_bounds.joined(
            [empty, *(moved(part, lambda a: a[None]) for part in parts)], x.dtype, np.concatenate
        )
        self.put(f"fc.{name}(fc.cut({{0}}, {every}, tail='emit'), axis=1)", element,
                 bounds.cast(bound, element.dtype), True, value)  # fmt: skip

    def _flatten(self, value: Value) -> None:
        self.put("fc.flatten({0})", fc.flatten(value.element), moved(value.bound, lambda a: a.reshape(-1)), True, value)

    def _spool(self, value: Value) -> None:
        self.put("fc.spool({0})", fc.spool(value.element), value.bound, True, value)

    def _repeat(self, value: Value) -> None:
        self.repeat(value, self.whole(0, 4))

    def repeat(self, value: Value, count: int) -> Value | None:
        bound = moved(value.bound, lambda a: np.repeat(a, count, axis=0))
        return self.put(
            f"fc.repeat({{0}}, {count}, axis=0)", fc.repeat(value.element, count, axis=0), bound, True, value
        )

    def _end_to_end(self, value: Value) -> None:
        alike = [v for v in self.program.values if v.stream and v.element.spec.shape == value.element.spec.shape]
        others = self.draw(st.lists(st.sampled_from(alike), min_size=1, max_size=2))
        self.end_to_end([value, *others] if self.pick([True, False]) else [*others, value])

    def end_to_end(self, parts: list[Value], axis: int = 0) -> Value | None:
        try:
            element = fc.concat([part.element for part in parts], axis=axis)
        except SpecError:
            return None
        bound = stream_bounds.joined(
            [part.bound for part in parts], element.dtype, lambda arrays: np.concatenate(arrays, axis=axis)
        )
        names = ", ".join(f"{{{i}}}" for i in range(len(parts)))
        return self.put(f"fc.concat([{names}], axis={axis})", element, bound, True, *parts)

    def _together(self, value: Value) -> None:
        """Streams of equal length joined inside their items."""
        rank = value.element.ndim
        alike = [v for v in self.program.values if v.stream and v.bound.shape == value.bound.shape]
        parts = [value, *self.draw(st.lists(st.sampled_from(alike), max_size=2))]
        if rank > 1 and self.pick([True, False]):
            self.end_to_end(parts, axis=self.whole(1, rank - 1))
            return
        axis = self.whole(1, rank)
        try:
            element = fc.stack([part.element for part in parts], axis=axis)
        except SpecError:
            return
        bound = stream_bounds.joined(
            [part.bound for part in parts], element.dtype, lambda arrays: np.stack(arrays, axis=axis)
        )
        names = ", ".join(f"{{{i}}}" for i in range(len(parts)))
        self.put(f"fc.stack([{names}], axis={axis})", element, bound, True, *parts)

    # -- scans ----------------------------------------------------------------------------------

    def _scan(self, value: Value) -> None:
        name = self.pick(["sum", "sum", "prod", "max", "min", "ema", "ema", "step"])
        if name == "ema":
            alpha = self.pick([1, 0.5, 0.1, 0.001])
            wide = single(value.dtype) if is_float(value.dtype) else FLOAT64
            bound = stream_bounds.decayed(bounds.cast(value.bound, wide), alpha)
            element = fc.ema(value.element, alpha)
            self.put(f"fc.ema({{0}}, {alpha})", element, bounds.cast(bound, element.dtype), True, value)
        elif name == "step":
            self._step_by_step(value)
        else:
            axis = self.pick([0, 0, *range(value.bound.value.ndim)])
            inner = stream_bounds.summed(value.dtype) if name in ("sum", "prod") else single(value.dtype)
            bound = stream_bounds.cumulative(f"cumulative_{name}", bounds.cast(value.bound, inner), axis)
            element = getattr(fc, f"cumulative_{name}")(value.element, axis=axis)
            self.put(f"fc.cumulative_{name}({{0}}, axis={axis})", element,
                     bounds.cast(bound, element.dtype), True, value)  # fmt: skip

    def _step_by_step(self, value: Value) -> None:
        if value.dtype.kind != "i" or not known(value.bound):
            return
        item = value.element.spec.shape
        state, states = np.zeros(item, np.int64), [np.zeros((0, *item), np.int64)]
        for record in value.bound.value:
            state = _mix(state, record)
            states.append(np.asarray(state)[None])
        element = fc.scan(_mix, value.element, init=np.zeros(item, np.int64))
        self.put("fc.scan(_mix, {0}, init=0)", element, bounds.exactly(np.concatenate(states)), True, value)

    # -- streams that part and meet again ---------------------------------------------------------

    def meet(self, a: Value | None, b: Value | None) -> None:
        if a is None or b is None or not self.fits(a, b):
            return
        name = self.pick(["add", "subtract", "multiply", "maximum", "less"])
        self._apply_binary(name, a.element, b.element, (a, b), (a.bound, b.bound))

    def _lag(self, value: Value) -> None:
        lag = self.whole(0, min(value.bound.shape[0], self.pick([1, 3, 70])))
        self.meet(self.section(value, lag, None), self.section(value, None, value.bound.shape[0] - lag))

    def _detrend(self, value: Value) -> None:
        seen = self.window(value, self.pick([2, 3, 5, 9]), 1, self.pick(["edge", "reflect", 0]))
        if seen is not None:
            self._reduction(seen, self.pick(["mean", "max", "sum"]), (1,))
            self.meet(value, self.program.values[-1])

    def _masked(self, value: Value) -> None:
        length = value.bound.shape[0]
        mask = self.mask(length)
        if mask is None:
            return
        other = self.pick([v for v in self.program.values if v.stream and self.fits(v, value)])
        self.meet(self.select(value, mask), self.select(other, mask))

    def _centred(self, value: Value) -> None:
        self._reduction(value, self.pick(["mean", "mean", "sum", "max", "min"]), (0,))
        self.meet(value, self.program.values[-1])

    def _halves(self, value: Value) -> None:
        half = value.bound.shape[0] // 2
        self.meet(self.section(value, 0, half), self.section(value, half, 2 * half))

    def _spread_again(self, value: Value) -> None:
        """One result for each run, met by every record of the run."""
        length, every = value.bound.shape[0], self.pick([1, 2, 5, 64])
        cut = self.cut(value, every, "pad")
        if cut is None:
            return
        self._reduction(cut, self.pick(["sum", "max", "mean"]), (1,))
        whole = self.repeat(self.program.values[-1], every) if self.program.values[-1].stream else None
        if whole is not None and whole.bound.shape[0] >= length:
            self.meet(value, self.section(whole, 0, length))

    def _rejoined(self, value: Value) -> None:
        place = self.whole(0, value.bound.shape[0])
        first, second = self.section(value, 0, place), self.section(value, place, None)
        if first is not None and second is not None:
            self.meet(value, self.end_to_end([first, second]))


def _mix(state: Any, record: Any) -> Any:
    """A step that hangs on the order of all records."""
    return (state * 3 + record) % 1009
