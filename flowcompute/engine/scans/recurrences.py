"""Scans that go record after record, on the host: recurrences, a state-space model, and steps of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowcompute.elements.nn import selective_scan_of
from flowcompute.elements.streams import KernelScan
from flowcompute.engine.folds import fused_multiply_add
from flowcompute.engine.host import cast, elementwise, evaluate
from flowcompute.engine.scans.carry import Scan
from flowcompute.errors import RunError
from flowcompute.function_ir import stored
from flowcompute.graph import Node
from flowcompute.ir import RUN, canonical_nan, first_carries, register_dtype
from flowcompute.spec import FLOAT64, is_float


def step_of(node: Node) -> Callable[..., list[np.ndarray]]:
    """Compute a step of a scan by a typed function, of arrays in the dtypes of its arithmetic: all its results."""
    assert isinstance(node.element, KernelScan)
    function = node.element.step.function
    dtypes = [stored(name) for name in function.results]

    def stepped(*numbers: np.ndarray) -> list[np.ndarray]:
        results = evaluate(function, numbers, elementwise, cast)
        rounded = (result.astype(dtype, copy=False) for result, dtype in zip(results, dtypes, strict=True))
        return [result.astype(register_dtype(result.dtype), copy=False) for result in rounded]

    return stepped


def carried(carries: Sequence[np.ndarray]) -> dict[str, Any]:
    """Return the snapshot of what a recurrence carries: an array, or a list of several."""
    return {"carry": carries[0] if len(carries) == 1 else list(carries)}


def carries_of(state: dict[str, Any]) -> list[np.ndarray]:
    """Return the arrays of such a snapshot."""
    carry = state["carry"]
    return list(carry) if isinstance(carry, list | tuple) else [carry]


class DecayScan(Scan):
    """The first-order recurrence `y = (1 - alpha) * y + alpha * x`, begun by the first record itself.

    Computed in float64, record after record across the columns of an item. Numbers are few operations each, so runs of
    records wait for one another only through one multiplication.
    """

    def __init__(self, node: Node) -> None:
        self._alpha = float(node.attrs["alpha"])
        self._carry: np.ndarray | None = None

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Run by run; see `Scan.advance`."""
        (array,) = arrays
        done = 0
        with np.errstate(all="ignore"):
            while done < len(array):
                items = min(RUN - (start + done) % RUN, len(array) - done)
                if (start + done) % RUN == 0:
                    items = max(items, (len(array) - done) // RUN * RUN)
                self._runs(array[done : done + items].astype(FLOAT64), out[done : done + items])
                done += items
            canonical_nan(out)

    def _runs(self, piece: np.ndarray, out: np.ndarray) -> None:
        keep = 1.0 - self._alpha
        state = self._carry
        if piece.ndim == 1:
            # Python's floats are the same float64 and several times as fast as NumPy's one by one.
            numbers = piece.tolist()
            last = numbers[0] if state is None else keep * float(state) + self._alpha * numbers[0]
            results = [last]
            for number in numbers[1:]:
                last = keep * last + self._alpha * number
                results.append(last)
            out[...] = results
            self._carry = np.asarray(last)
            return
        for position, record in enumerate(piece):
            state = record if state is None else keep * state + self._alpha * record
            out[position] = state
        self._carry = state

    def snapshot(self) -> dict[str, Any]:
        """Return the last result."""
        return {"carry": None if self._carry is None else np.array(self._carry)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._carry = state["carry"]


class RecurrenceScan(Scan):
    """The recurrence `h = a * h + b`, each step rounded once, record after record."""

    def __init__(self, node: Node) -> None:
        self._carry = np.zeros(node.spec.shape, node.spec.dtype)

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Record by record; see `Scan.advance`."""
        del start
        a, b = (np.broadcast_to(array, out.shape).reshape(len(out), self._carry.size) for array in arrays)
        last, results = self._carry.reshape(-1), np.empty(a.shape, out.dtype)
        with np.errstate(all="ignore"):
            for position in range(len(out)):
                last = results[position] = fused_multiply_add(a[position], last, b[position])
        self._carry = last.reshape(self._carry.shape)
        out[...] = canonical_nan(results.reshape(out.shape))

    def snapshot(self) -> dict[str, Any]:
        """Return the last result."""
        return {"carry": np.array(self._carry)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._carry = state["carry"]


class SelectiveScan(Scan):
    """A state-space model along time inside each item: nothing is carried from record to record."""

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Compute every item anew; see `Scan.advance`."""
        del start
        with np.errstate(all="ignore"):
            out[...] = canonical_nan(selective_scan_of(*arrays))

    def snapshot(self) -> dict[str, Any]:
        """Do nothing: there is no state."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing: there is no state."""


class StepScan(Scan):
    """A step by a user's typed function, record after record."""

    def __init__(self, node: Node) -> None:
        assert isinstance(node.element, KernelScan)
        self._carries, self._step, self._result = first_carries(node), step_of(node), node.element.step.result

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Record by record; see `Scan.advance`."""
        del start
        numbers = [
            np.broadcast_to(array.astype(register_dtype(array.dtype), copy=False), out.shape) for array in arrays
        ]
        with np.errstate(all="ignore"):
            for position in range(len(out)):
                self._carries = self._step(*self._carries, *(one[position] for one in numbers))
                out[position] = self._carries[self._result]
        # A step may return a number of its operands, whose memory the next batch takes.
        self._carries = [np.array(carry) for carry in self._carries]
        if is_float(out.dtype):
            canonical_nan(out)

    def snapshot(self) -> dict[str, Any]:
        """Return the last result, or all of them."""
        return carried([np.array(carry) for carry in self._carries])

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._carries = carries_of(state)


class FunctionScan(Scan):
    """A user's step in Python, called for each record in order."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._function = node.element.function  # type: ignore[attr-defined]
        self._carry: np.ndarray = node.element.init  # type: ignore[attr-defined]

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Record by record; see `Scan.advance`."""
        spec = self._node.spec
        for position in range(len(out)):
            items = [array[position] for array in arrays]
            records = (start + position, start + position + 1)
            where: dict[str, Any] = {"element": self._node.name, "site": self._node.element.site, "records": records}
            try:
                carry = np.asarray(self._function(self._carry, *items))
            except Exception as error:
                raise RunError(f"the step failed: {type(error).__name__}: {error}", **where) from error
            if carry.shape != spec.shape or not np.can_cast(carry.dtype, spec.dtype, "same_kind"):
                raise RunError(
                    "cannot go on with what the step returned: it is not like the carry that it was given",
                    **where,
                    expected=f"{spec.dtype.name} of shape {spec.shape}, as init=",
                    got=f"{carry.dtype.name} of shape {carry.shape}",
                )
            self._carry = carry.astype(spec.dtype)
            out[position] = self._carry

    def snapshot(self) -> dict[str, Any]:
        """Return the carry."""
        return {"carry": np.array(self._carry)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._carry = state["carry"]
