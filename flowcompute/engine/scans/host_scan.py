"""Scans: running results along the stream or along an item axis, in canonical order.

The order belongs to the op. Records are scanned in runs of `RUN` one after the other in the operand's dtype. The
results of the runs of a tile are added up in order, and so are those of tiles, floats in float64. A tile holds
`scan_tile(numbers)` records and begins at a multiple of that, so nothing depends on where batches are cut. A record's
result is `carry + (runs before it in its tile + its place in its run)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from flowcompute.elements.nn import SELECTIVE_SCAN, SELF_ATTENTION
from flowcompute.elements.streams import TEXT_PLACES, KernelScan
from flowcompute.engine.scans.attention_scan import AttentionScan
from flowcompute.engine.scans.carry import Scan
from flowcompute.engine.scans.recurrences import (
    DecayScan,
    FunctionScan,
    RecurrenceScan,
    SelectiveScan,
    StepScan,
    carried,
    step_of,
)
from flowcompute.engine.scans.text_places_scan import TextPlacesScan
from flowcompute.graph import Node
from flowcompute.ir import RUN, canonical_nan, first_carries, maximum, merge_dtype, minimum, register_dtype, scan_tile
from flowcompute.spec import is_float

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
Accumulate = Callable[[np.ndarray, int], np.ndarray]


class TiledScan(Scan):
    """A scan by an associative operation.

    Args:
        accumulate: the results inside a run, along an axis, in the dtype of the numbers.
        combine: the operation where results of runs and tiles are put together.
        wide: the dtype in which they are.
        node: the scan.
        tile: records in a tile; that of items of so many numbers as come by default.
    """

    def __init__(
        self, accumulate: Accumulate, combine: Combine, wide: np.dtype, node: Node, tile: int | None = None
    ) -> None:
        self._tile_items = tile
        self._accumulate = accumulate
        self._combine = combine
        self._dtype = register_dtype(node.spec.dtype)
        self._wide = wide
        self._shape = node.spec.shape
        self._carry: np.ndarray | None = None
        self._runs: np.ndarray | None = None
        self._run: np.ndarray | None = None
        self._exclusive = bool(node.attrs.get("exclusive", False))
        assert node.op is not None
        self._first = 1 if node.op.name == "cumulative_prod" else 0

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Compute tile by tile; see `Scan.advance`."""
        if not self._exclusive or not len(out):
            self._advance(arrays, start, out)
            return
        before, results = self._so_far(), np.empty(out.shape, out.dtype)
        self._advance(arrays, start, results)
        with np.errstate(all="ignore"):
            out[0] = self._first if before is None else before
        out[1:] = results[:-1]
        if is_float(out.dtype):
            canonical_nan(out)

    def _so_far(self) -> np.ndarray | None:
        """Return what all numbers so far come to."""
        parts = [part.astype(self._wide) for part in (self._carry, self._runs, self._run) if part is not None]
        if not parts:
            return None
        with np.errstate(all="ignore"):
            total = parts.pop()
            while parts:
                total = self._combine(parts.pop(), total)
        return total

    def _advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        (array,) = arrays
        tile = self._tile_items or scan_tile(math.prod(array.shape[1:]))
        done = 0
        with np.errstate(all="ignore"):
            while done < len(array):
                phase = (start + done) % tile
                items = min(tile - phase, len(array) - done)
                piece = np.ascontiguousarray(array[done : done + items], self._dtype)
                self._tile(piece, phase, out[done : done + items])
                if phase + items == tile:
                    self._end_tile()
                done += items
            if is_float(out.dtype):
                canonical_nan(out)

    def _tile(self, piece: np.ndarray, phase: int, out: np.ndarray) -> None:
        """Scan records of one tile, the first of which is number `phase` of it."""
        done = 0
        while done < len(piece):
            inside = (phase + done) % RUN
            left = len(piece) - done
            if inside or left < RUN:
                items = min(RUN - inside, left)
                self._part_of_run(piece[done : done + items], inside, out[done : done + items])
            else:
                items = left // RUN * RUN
                self._whole_runs(piece[done : done + items], out[done : done + items])
            done += items

    def _part_of_run(self, piece: np.ndarray, inside: int, out: np.ndarray) -> None:
        if inside:
            assert self._run is not None
            piece = np.concatenate([self._run[None], piece])
        local = self._accumulate(piece, 0)[1 if inside else 0 :]
        self._run = local[-1].copy()
        out[...] = self._placed(local.astype(self._wide), self._runs)
        if (inside + len(local)) == RUN:
            self._end_runs(self._run.astype(self._wide)[None])

    def _whole_runs(self, piece: np.ndarray, out: np.ndarray) -> None:
        local = self._accumulate(piece.reshape(len(piece) // RUN, RUN, *piece.shape[1:]), 1)
        before = self._end_runs(local[:, -1].astype(self._wide))
        wide = local.astype(self._wide)
        # Nothing comes before the first run of a tile.
        offsets = [offset for offset in before if offset is not None]
        if offsets:
            first = len(before) - len(offsets)
            wide[first:] = self._combine(np.stack(offsets)[:, None], wide[first:])
        flat = wide.reshape(len(piece), *piece.shape[1:])
        out[...] = flat if self._carry is None else self._combine(self._carry, flat)

    def _placed(self, local: np.ndarray, runs: np.ndarray | None) -> np.ndarray:
        if runs is not None:
            local = self._combine(runs, local)
        return local if self._carry is None else self._combine(self._carry, local)

    def _end_runs(self, totals: np.ndarray) -> list[np.ndarray | None]:
        """Add up the results of whole runs; gives what came before each of them in the tile."""
        before: list[np.ndarray | None] = []
        for total in totals:
            before.append(self._runs)
            self._runs = total if self._runs is None else self._combine(self._runs, total)
        self._run = None
        return before

    def _end_tile(self) -> None:
        total = self._runs
        if self._run is not None:
            last = self._run.astype(self._wide)
            total = last if total is None else self._combine(total, last)
        assert total is not None
        self.take_tile(total)

    def take_tile(self, total: np.ndarray) -> None:
        """Add the result of a whole tile to those before it; the next one begins."""
        with np.errstate(all="ignore"):
            self._carry = total if self._carry is None else self._combine(self._carry, total)
        self._runs = self._run = None

    def unknown(self) -> dict[str, Any]:
        """Return a state that may stand anywhere within a tile, for results that nobody looks at."""
        return {"carry": None, "runs": np.zeros(self._shape, self._wide), "run": np.zeros(self._shape, self._dtype)}

    def snapshot(self) -> dict[str, Any]:
        """Return the carry of tiles, of runs and inside the run."""
        parts = {"carry": self._carry, "runs": self._runs, "run": self._run}
        return {name: None if part is None else np.array(part) for name, part in parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._carry, self._runs, self._run = state["carry"], state["runs"], state["run"]


class ItemScan(Scan):
    """A scan along an axis of each item: nothing is carried from record to record."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._axis = int(node.attrs["axis"])

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Compute every item anew; see `Scan.advance`."""
        del start
        axis = self._axis + 1 if self._node.spec.is_stream else self._axis
        spread = [np.broadcast_to(self._lined_up(array, out), out.shape) for array in arrays]
        moved = [np.moveaxis(array, axis, 0) for array in spread]
        shape = moved[0].shape
        lead = [array.reshape(shape[0], math.prod(shape[1:])) for array in moved]
        result = np.empty(lead[0].shape, out.dtype)
        self._scan(lead[0].shape[1]).advance(lead, 0, result)
        out[...] = np.moveaxis(result.reshape(shape), 0, axis)

    @staticmethod
    def _lined_up(array: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Return a batch of items of fewer axes, beside those of the result."""
        if array.ndim < out.ndim and array.shape[:1] == out.shape[:1]:
            return array.reshape(array.shape[0], *(1,) * (out.ndim - array.ndim), *array.shape[1:])
        return array

    def _scan(self, sequences: int) -> Scan:
        """Scan all sequences side by side."""
        assert self._node.op is not None
        if self._node.op.name == "linear_recurrence":
            made: Scan = RecurrenceScan(self._node)
            made.restore({"carry": np.zeros(sequences, self._node.spec.dtype)})
            return made
        if isinstance(self._node.element, KernelScan) and not self._node.element.associative:
            made = StepScan(self._node)
            made.restore(carried([np.broadcast_to(begun, sequences) for begun in first_carries(self._node)]))
            return made
        # The order is that of one item's axis: other axes, and records, do not count as its numbers.
        return _tiled(self._node, tile=scan_tile(1))

    def snapshot(self) -> dict[str, Any]:
        """Do nothing: there is no state."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing: there is no state."""


_UFUNCS: dict[str, tuple[np.ufunc, Combine]] = {
    "cumulative_sum": (np.add, np.add),
    "cumulative_prod": (np.multiply, np.multiply),
    "cumulative_max": (np.maximum, maximum),
    "cumulative_min": (np.minimum, minimum),
}


def _along(ufunc: np.ufunc, numbers: np.ndarray, axis: int) -> np.ndarray:
    """Combine a run of numbers along an axis, one after the other."""
    result = ufunc.accumulate(numbers, axis=axis, dtype=numbers.dtype)
    if ufunc in (np.maximum, np.minimum) and is_float(numbers.dtype) and (zero := result == 0).any():
        # Of zeros +0 is the larger, whichever NumPy takes.
        better = np.signbit(numbers) == (ufunc is np.minimum)
        seen = np.logical_or.accumulate((numbers == 0) & better, axis=axis)
        wanted = np.where(seen == (ufunc is np.maximum), 0.0, -0.0)
        np.copyto(result, wanted, where=zero, casting="unsafe")
    return np.asarray(result)


def _step_along(step: Combine, numbers: np.ndarray, axis: int) -> np.ndarray:
    """Do as `_along`, by a typed function."""
    moved = np.moveaxis(numbers, axis, 0)
    results = [moved[0]]
    for number in moved[1:]:
        results.append(step(results[-1], number))
    return np.stack(results, axis=axis)


def _tiled(node: Node, tile: int | None = None) -> TiledScan:
    """Scan by an associative operation, of the tables or a user's."""
    assert node.op is not None
    dtype = register_dtype(node.spec.dtype)
    if isinstance(node.element, KernelScan):
        stepped = step_of(node)

        def step(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return stepped(left, right)[0]

        return TiledScan(partial(_step_along, step), step, dtype, node, tile)
    ufunc, combine = _UFUNCS[node.op.name]
    return TiledScan(partial(_along, ufunc), combine, merge_dtype(dtype), node, tile)


_ONE_BY_ONE: dict[str, Callable[[Node], Scan]] = {
    "ema": DecayScan,
    "scan": FunctionScan,
    "linear_recurrence": RecurrenceScan,
}


def _stream_scan(node: Node) -> Scan:
    assert node.op is not None
    if isinstance(node.element, KernelScan) and not node.element.associative:
        return StepScan(node)
    made = _ONE_BY_ONE.get(node.op.name)
    return _tiled(node) if made is None else made(node)


def make_scan(node: Node) -> Scan:
    """Make the scan of a node, at its beginning."""
    if node.op is SELECTIVE_SCAN:
        return SelectiveScan()
    if node.op is SELF_ATTENTION:
        return AttentionScan(node)
    if node.op is TEXT_PLACES:
        return TextPlacesScan(node)
    return _stream_scan(node) if node.attrs.get("axis") is None else ItemScan(node)
