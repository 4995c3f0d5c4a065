"""Runs the clocks of a pass: which source is read next, and which clocks can advance on what has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from flowcompute.elements import Kind
from flowcompute.engine.backend import DRAIN
from flowcompute.engine.batch_slice import Arrays
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.streams import InputBuffer
from flowcompute.errors import RunError
from flowcompute.graph import Graph
from flowcompute.schedule import Clock
from flowcompute.schedule.memory import base_item_bytes, extra_items

Made = dict[int, tuple[int, int]]
"""By value id: the records that were computed, from and to."""

Slice = tuple[int, int, Mapping[int, np.ndarray]]
"""Records of a batch that were computed together, from and to, and all values of theirs."""

RunBatch = Callable[[Clock, int, int, Arrays, Mapping[int, np.ndarray]], Iterator[Slice]]
"""`run(clock, start, items, arrays, outputs)` computes a batch of a clock, slice by slice; mostly there is one."""


class StreamScheduler:
    """The clocks of one pass at work.

    Args:
        state: of the pass; its streams are advanced here.
        run: computes a batch.
    """

    def __init__(self, state: PassState, run: RunBatch) -> None:
        plan, one_pass = state.plan, state.one_pass
        self._state = state
        self._clocks = one_pass.clocks
        self._derived = [clock for clock in one_pass.clocks if clock.entries]
        self._run = run
        self._nodes = plan.graph.nodes
        self._by_hand = plan.config.by_hand
        self._feeds = _feeds(self._clocks)
        ends = {sink.value for sink in one_pass.sinks} | set(plan.folds) | set(plan.host_folds)
        self._terminal = {clock.id for clock in self._clocks if clock.values & ends}
        free_bytes = max(0, plan.memory.budget_bytes - plan.memory.host_bytes)
        self._limit_bytes = free_bytes + _waiting_bytes(plan.graph, self._clocks)

    @property
    def _input_buffers(self) -> list[dict[int, InputBuffer]]:
        return self._state.input_buffers

    # -- what next --------------------------------------------------------------------------

    def wants(self) -> int | None:
        """Return the root clock to read next, `DRAIN`, or None when all has been computed."""
        if any(self._ready(clock) for clock in self._derived):
            return DRAIN
        open_roots = [clock for clock in self._clocks if clock.is_root and not self._state.ended[clock.id]]
        useful = [clock for clock in open_roots if self._is_of_use(clock.id)]
        wanted = [clock for clock in useful if not self._is_early(clock.id)]
        if useful and not wanted:
            if self._state.restored:
                raise ValueError("streams that are joined end to end wait for each other")
            raise RunError(
                "cannot read streams that are joined end to end and wait for each other",
                element=next(iter(self._nodes[i].name for i in sorted(useful[0].values)), None),
                hint="please report this; resolving the results one after the other avoids it",
            )
        if not wanted:
            return None
        return min(wanted, key=lambda clock: self._pressure(clock.id)).id

    def _is_of_use(self, clock: int) -> bool:
        """Check whether anything still comes of this clock's records: a section may have all it wants."""
        if self._state.ended[clock]:
            return False
        feeds = self._feeds[clock]
        return clock in self._terminal or any(
            not self._input_buffers[target][value].ended and self._is_of_use(target) for target, value, _, _ in feeds
        )

    def _is_early(self, clock: int) -> bool:
        """Check whether it is not yet the turn of this clock's records where streams are joined end to end."""
        return any(
            (not self._input_buffers[target][value].wants(arm) and not self._input_buffers[target][value].ended)
            or self._is_early(target)
            for target, value, arm, _ in self._feeds[clock]
            if self._is_of_use(target)
        )

    def _is_passed_over(self, target: int, value: int, arm: int) -> bool:
        """Check whether it is not the turn of these records, and never will be: nobody wants what comes of them."""
        return not self._input_buffers[target][value].wants(arm) and not self._is_of_use(target)

    def _pressure(self, clock: int) -> int:
        """Return the bytes of this clock's values that wait for partners: whoever has least is read next."""
        held = [0]
        for target, value, _, _ in self._feeds[clock]:
            if len(self._input_buffers[target]) > 1:
                held.append(self._input_buffers[target][value].held_bytes)
            held.append(self._pressure(target))
        return max(held)

    def _ready(self, clock: Clock) -> int:
        """Return the records with which a clock can advance now."""
        input_buffers = self._input_buffers[clock.id].values()
        most = min(input_buffer.available for input_buffer in input_buffers)
        whole = all(input_buffer.ended for input_buffer in input_buffers)
        if self._state.limits is not None:
            left = max(0, self._state.limits[clock.id] - self._state.starts[clock.id])
            most, whole = min(most, left), whole or most >= left
        items = min(most, clock.batch_items)
        if items == most and whole:
            return items
        return items // clock.granule * clock.granule

    # -- work -------------------------------------------------------------------------------

    def process(self, root: int, items: int, arrays: Arrays, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute a batch of a root clock, and what it lets other clocks compute."""
        made: Made = {}
        self._advance(self._clocks[root], items, arrays, outputs, made)
        if self._state.ends_early(self._clocks[root]):
            self._finish(root)
        self._follow(outputs, made)
        return made

    def end(self, root: int, outputs: Mapping[int, np.ndarray]) -> Made:
        """End the sources of a root clock."""
        made: Made = {}
        self._finish(root)
        self._follow(outputs, made)
        return made

    def drain(self, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute with what waits."""
        made: Made = {}
        before = list(self._state.starts), list(self._state.ended)
        self._follow(outputs, made)
        stuck = next((clock for clock in self._derived if self._ready(clock)), None)
        if stuck is not None and before == (self._state.starts, self._state.ended):
            # `wants` would ask for the same again, for ever. Where no clock is ready it asks for a source.
            if self._state.restored:
                raise ValueError("records wait for a stream that does not take them")
            node = self._nodes[min(stuck.values)]
            raise RunError(
                "cannot go on: records wait for a stream that does not take them",
                element=node.name,
                site=node.element.site,
                hint="please report this",
            )
        return made

    def _advance(self, clock: Clock, items: int, arrays: Arrays, outputs: Mapping[int, np.ndarray], made: Made) -> None:
        start = self._state.starts[clock.id]
        if clock.length is not None and start + items > clock.length:
            raise self._wrong_length(clock, f"{start + items} or more")
        mine = {value: array[:items] for value, array in outputs.items() if value in clock.values}
        for first, stop, values in self._run(clock, start, items, arrays, mine):
            self._state.starts[clock.id] = stop
            for target, value, arm, inputs in self._feeds[clock.id]:
                if not self._is_passed_over(target, value, arm):
                    self._input_buffers[target][value].feed(arm, [values[i] for i in inputs], first)
        made.update(dict.fromkeys(mine, (start, start + items)))

    def _follow(self, outputs: Mapping[int, np.ndarray], made: Made) -> None:
        """Let each clock that has entries advance once."""
        for clock in self._derived:
            if self._state.ended[clock.id]:
                continue
            items = self._ready(clock)
            input_buffers = self._input_buffers[clock.id]
            if items:
                arrays = {value: input_buffer.take(items) for value, input_buffer in input_buffers.items()}
                self._advance(clock, items, arrays, outputs, made)
            if not self._ready(clock):
                self._check_ends(clock)
        for clock in self._derived:
            for input_buffer in self._input_buffers[clock.id].values():
                input_buffer.settle()
        if self._derived:
            self._check_held()

    def _check_ends(self, clock: Clock) -> None:
        """End a clock whose entries have all ended; refuse entries of different length."""
        input_buffers = list(self._input_buffers[clock.id].values())
        over = [input_buffer for input_buffer in input_buffers if input_buffer.ended and not input_buffer.available]
        more = [input_buffer for input_buffer in input_buffers if input_buffer.available]
        if over and more:
            raise self._unequal(clock, over[0], more[0])
        if len(over) == len(input_buffers):
            self._finish(clock.id)

    def _finish(self, clock: int) -> None:
        length = self._clocks[clock].length
        cut_short = self._by_hand or self._state.ends_early(self._clocks[clock])
        if length is not None and self._state.starts[clock] != length and not cut_short:
            raise self._wrong_length(self._clocks[clock], str(self._state.starts[clock]))
        self._state.ended[clock] = True
        for target, value, arm, _ in self._feeds[clock]:
            if not self._is_passed_over(target, value, arm):
                self._input_buffers[target][value].end(arm, self._state.starts[clock])

    # -- errors -----------------------------------------------------------------------------

    def _unequal(self, clock: Clock, short: InputBuffer, long: InputBuffer) -> RunError:
        self._doubt_state(clock, f"{short.name} ends before {long.name}")
        more = f"{'' if long.ended else 'at least '}{long.taken + long.available}"
        meeting = next((self._nodes[i] for i in sorted(clock.values) if i not in self._input_buffers[clock.id]), None)
        return RunError(
            f"cannot combine the streams {short.name!r} and {long.name!r}, which have different lengths",
            element=short.name if meeting is None else meeting.name,
            site=None if meeting is None else meeting.element.site,
            expected=f"as many records from {short.name!r} as from {long.name!r}: {more}",
            got=f"{short.taken}",
            hint="make the streams equally long before they meet",
        )

    def _wrong_length(self, clock: Clock, got: str) -> RunError:
        """Make the error of a stream of unknown length that meets one of a known length and is not as long."""
        self._doubt_state(clock, f"{got} records in place of {clock.length}")
        here = clock.values.union(self._input_buffers[clock.id])
        streams = [self._nodes[i] for i in sorted(here) if self._nodes[i].spec.is_stream]
        known = next(node for node in streams if node.spec.length is not None)
        other = next((node for node in streams if node.spec.length is None), known)
        if known.kind is Kind.ALONG:
            return RunError(
                "cannot cut a resident value along a stream of another length",
                element=known.name,
                site=known.element.site,
                expected=f"{clock.length} records, as the resident value has rows",
                got=f"{got} records",
            )
        return RunError(
            f"cannot combine the streams {known.name!r} and {other.name!r}, which have different lengths",
            element=other.name,
            site=other.element.site,
            expected=f"as many records as {known.name!r} has: {clock.length}",
            got=got,
            hint="make the streams equally long before they meet",
        )

    def _doubt_state(self, clock: Clock, what: str) -> None:
        """Raise ValueError where only a state that was restored can be at fault: all lengths have been compared."""
        lengths = [self._nodes[i].spec for i in clock.values.union(self._input_buffers[clock.id])]
        if self._state.restored and all(spec.length is not None for spec in lengths if spec.is_stream):
            raise ValueError(what)

    def _check_held(self) -> None:
        held = [
            (input_buffer.held_bytes, input_buffer)
            for input_buffers in self._input_buffers
            for input_buffer in input_buffers.values()
        ]
        total = sum(size for size, _ in held)
        if total > self._limit_bytes:
            _, input_buffer = max(held, key=lambda pair: pair[0])
            raise RunError(
                "cannot hold more: records wait for partners that come much later, beyond the memory budget",
                element=input_buffer.name,
                expected=f"at most {self._limit_bytes} bytes that wait",
                got=f"{total} bytes and more to come",
                hint="raise memory=, or write one of the streams to a file first",
            )


def _feeds(clocks: tuple[Clock, ...]) -> list[list[tuple[int, int, int, list[int]]]]:
    """Return for each clock where its values go: (clock, entry, arm, the values that go there together)."""
    feeds: list[list[tuple[int, int, int, list[int]]]] = [[] for _ in clocks]
    for clock in clocks:
        for entry in clock.entries:
            if entry.node is not None and entry.node.op is not None and entry.node.op.name == "concat":
                for arm, (origin, value) in enumerate(entry.inputs):
                    feeds[origin].append((clock.id, entry.value, arm, [value]))
            else:
                feeds[entry.inputs[0][0]].append((clock.id, entry.value, 0, [value for _, value in entry.inputs]))
    return feeds


def _waiting_bytes(graph: Graph, clocks: tuple[Clock, ...]) -> int:
    """Return the bytes that the plan has counted for what waits."""
    return sum(
        2 * base_item_bytes(graph, entry) * (clock.batch_items + extra_items(entry) + clock.granule)
        for clock in clocks
        for entry in clock.entries
    )
