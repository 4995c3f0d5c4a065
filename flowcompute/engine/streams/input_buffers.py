"""Input buffers of a clock: records that are selected, cut or windowed of other streams, and how many bytes wait.

Input buffers take batches of one clock and give batches of another. What they hold in between is
state: the remainder of a cut, the last records of a window, records that came before their
partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.engine.folds import Fold
from flowcompute.engine.streams.fallible_input import Attempt, FallibleInput
from flowcompute.engine.streams.input_buffer import InputBuffer
from flowcompute.errors import RunError
from flowcompute.graph import Graph, Node
from flowcompute.ir import FoldSpec
from flowcompute.rewrite import Entry
from flowcompute.schedule.memory import padding


class SelectInput(InputBuffer):
    """Records where a mask is true."""

    def _made(self, arrays: Sequence[np.ndarray], start: int) -> np.ndarray:
        del start
        records: np.ndarray = arrays[0][arrays[1]]
        return records


class SectionInput(InputBuffer):
    """Records `start`, `start + step`, ... below `stop`; it ends as soon as it has them."""

    def feed(self, arm: int, arrays: Sequence[np.ndarray], start: int) -> None:
        """Take what belongs to the section."""
        super().feed(arm, arrays, start)
        assert self._node is not None
        stop = self._node.attrs["stop"]
        self.ended = self.ended or (stop is not None and start + len(arrays[0]) >= stop)

    def _made(self, arrays: Sequence[np.ndarray], start: int) -> np.ndarray:
        assert self._node is not None
        first, stop, step = (self._node.attrs[key] for key in ("start", "stop", "step"))
        begin = max(0, first - start) if start <= first else -(start - first) % step
        end = None if stop is None else max(0, stop - start)
        return arrays[0][begin:end:step]


class FlattenInput(InputBuffer):
    """Each number of an item as a record."""

    def _made(self, arrays: Sequence[np.ndarray], start: int) -> np.ndarray:
        del start
        array = np.ascontiguousarray(arrays[0])
        return array.reshape(array.size)


class RepeatInput(InputBuffer):
    """Each record several times."""

    def _made(self, arrays: Sequence[np.ndarray], start: int) -> np.ndarray:
        del start
        assert self._node is not None
        return np.repeat(arrays[0], self._node.attrs["count"], axis=0)


class CutInput(InputBuffer):
    """Runs of records as one record each."""

    def take(self, items: int) -> np.ndarray:
        """Return the next runs, `(items, every, *item)`."""
        array = super().take(items)
        return array.reshape(items, self._size, *array.shape[1:])

    def end(self, arm: int, records: int) -> None:
        """Deal with the records that make no whole run."""
        del arm
        node = self._node
        assert node is not None
        rest = self._pending - self.available * self._size
        tail = node.attrs["tail"]
        if rest and tail == "error":
            raise RunError(
                "cannot cut a stream that does not end with a whole run",
                element=node.name,
                site=node.element.site,
                expected=f"a multiple of {self._size} records",
                got=f"{records} records, {rest} more than {records // self._size} runs",
                hint='fc.cut(x, every=n, tail="drop") or tail="pad" says what to do with the rest',
            )
        if rest and tail == "drop":
            self._discard_last(rest)
        elif rest:
            last = self._pieces[-1]
            self._append(np.full((self._size - rest, *last.shape[1:]), node.attrs["fill"], last.dtype))
        self.ended = True

    def _discard_last(self, records: int) -> None:
        self._pending -= records
        while records:
            piece = self._pieces[-1]
            if len(piece) > records:
                self._pieces[-1] = piece[:-records]
                break
            records -= len(piece)
            del self._pieces[-1]
        self._owned = min(self._owned, len(self._pieces))


class EachInput(InputBuffer):
    """A fold begun anew every so many records."""

    def __init__(self, entry: Entry, name: str, spec: FoldSpec) -> None:
        super().__init__(entry, name)
        assert entry.node is not None
        self._every = int(entry.node.attrs["every"])
        self._spec = spec
        self._fold = Fold(spec)

    def feed(self, arm: int, arrays: Sequence[np.ndarray], start: int) -> None:
        """Fold a batch; each whole run gives a record."""
        del arm
        items, done = len(arrays[0]), 0
        whole = [np.broadcast_to(array, (items, *self._spec.item)) for array in arrays]
        while done < items:
            left = self._every - (start + done) % self._every
            runs = (items - done) // self._every if left == self._every else 0
            stop = done + runs * self._every
            made = self._fold.values_of_runs([array[done:stop] for array in whole], self._every) if runs else None
            if made is not None:
                self._append(made)
                done = stop
                continue
            part = [array[done : done + left] for array in whole]
            self._fold.push_records(part)
            done += len(part[0])
            if len(part[0]) == left:
                self._finish_run()

    def end(self, arm: int, records: int) -> None:
        """End the last run, which may be shorter."""
        del arm
        if records % self._every:
            self._finish_run()
        self.ended = True

    def _finish_run(self) -> None:
        self._append(self._fold.result()[None])
        self._fold = Fold(self._spec)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as everywhere, with the state of the fold."""
        return {**super().snapshot(), "fold": self._fold.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._fold = Fold(self._spec)
        self._fold.restore(state["fold"])


class WindowInput(InputBuffer):
    """Neighbouring records seen together, with what is added at both ends of the stream."""

    def __init__(self, entry: Entry, name: str) -> None:
        super().__init__(entry, name)
        assert entry.node is not None
        self._before, self._after = padding(entry.node)
        self._pad = entry.node.attrs["pad"]
        self._begun = not self._before
        self._last: np.ndarray | None = None

    def feed(self, arm: int, arrays: Sequence[np.ndarray], start: int) -> None:
        """Take a batch; the first one with what stands before the stream."""
        del arm, start
        array = arrays[0]
        if not len(array):
            return
        if self._after:
            seen = array if self._last is None else np.concatenate([self._last, array[-self._after - 1 :]])
            self._last = seen[-self._after - 1 :].copy()
        if self._begun:
            self._append(array)
            return
        # A reflection needs as many records as it adds, and one more.
        self._pieces.append(array)
        if sum(map(len, self._pieces)) > self._before or self._pad != "reflect":
            self._begin()

    def end(self, arm: int, records: int) -> None:
        """Add what stands behind the stream."""
        del arm, records
        if not self._begun and self._pieces:
            self._begin()
        if self._after and self._last is not None:
            self._append(self._padded(self._last, 0, self._after)[-self._after :])
        self.ended = True

    def _begin(self) -> None:
        self._begun = True
        head = np.concatenate(self._pieces)[: self._before + 1]
        pieces = [self._padded(head, self._before, 0)[: self._before], *self._pieces]
        self._pieces, self._owned = [], 0
        for piece in pieces:
            self._append(piece)

    def _padded(self, array: np.ndarray, before: int, after: int) -> np.ndarray:
        widths = [(before, after), *[(0, 0)] * (array.ndim - 1)]
        if self._pad in ("edge", "reflect"):
            return np.pad(array, widths, mode=self._pad)
        return np.pad(array, widths, constant_values=self._pad)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as everywhere, with what the padding needs."""
        last = None if self._last is None else self._last.copy()
        return {**super().snapshot(), "begun": self._begun, "last": last}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._begun, self._last = state["begun"], state["last"]
        if not self._begun:
            self._pending = 0


class ConcatInput(InputBuffer):
    """Streams one after the other."""

    def __init__(self, entry: Entry, name: str) -> None:
        super().__init__(entry, name)
        self._arms = len(entry.inputs)
        self._arm = 0

    def wants(self, arm: int) -> bool:
        """Ask only for the stream whose turn it is."""
        return arm == self._arm

    def feed(self, arm: int, arrays: Sequence[np.ndarray], start: int) -> None:
        """Take a batch of the stream whose turn it is."""
        assert arm == self._arm, "streams joined end to end are read one after the other"
        super().feed(arm, arrays, start)

    def end(self, arm: int, records: int) -> None:
        """Go on to the next stream, if there is one."""
        del records
        assert arm == self._arm, "streams joined end to end end one after the other"
        self._arm += 1
        self.ended = self._arm == self._arms

    def snapshot(self) -> dict[str, Any]:
        """Return the state as everywhere, with whose turn it is."""
        return {**super().snapshot(), "arm": self._arm}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._arm = state["arm"]


_INPUT_BUFFERS: dict[str, type[InputBuffer]] = {
    "select": SelectInput,
    "section": SectionInput,
    "flatten": FlattenInput,
    "repeat": RepeatInput,
    "cut": CutInput,
    "window": WindowInput,
    "concat": ConcatInput,
}


def make_input_buffer(graph: Graph, entry: Entry, attempts: Mapping[int, Attempt]) -> InputBuffer:
    """Make the input buffer of an entry; `attempts` are those of host functions that may drop records, by node."""
    node = entry.node
    if node is not None and node.id in attempts:
        return FallibleInput(entry, node.name, attempts[node.id])
    if node is not None and node.op is not None and node.op.name == "each":
        return EachInput(entry, graph.nodes[entry.value].name, _each_spec(graph, node))
    kind = InputBuffer if node is None or node.op is None else _INPUT_BUFFERS[node.op.name]
    return kind(entry, graph.nodes[entry.value].name)


def _each_spec(graph: Graph, node: Node) -> FoldSpec:
    operands = [graph.nodes[i].spec for i in node.inputs]
    item = np.broadcast_shapes(*(operand.shape for operand in operands))
    attrs, result = node.attrs, node.spec
    return FoldSpec(
        attrs["fold"],
        operands[0].dtype,
        item,
        result.dtype,
        result.shape,
        correction=attrs["correction"],
        inputs=len(operands),
        fused=attrs.get("fused", False),
    )
