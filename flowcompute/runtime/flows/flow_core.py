"""Core of plain and trio flows: an opened plan, its state, and the results that wait."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.batch import Batch
from flowcompute.elements import State
from flowcompute.engine import DRAIN, Executor, PlannedJob, tile_records
from flowcompute.errors import CheckpointError, DeviceFullError, RunError
from flowcompute.metrics import Skipped
from flowcompute.observe import Observe
from flowcompute.runtime.events import FlowRecord
from flowcompute.schedule import SourceStage, find_dead_letters, policies
from flowcompute.sources import FeedSource
from flowcompute.strategy import Mode

Result = Any
_PLACE = "place"
"""Key of the records that a scan has taken since its tile began, in what it carries."""


class FlowCore:
    """An opened plan and its state. One thread at a time may compute, while another receives.

    Where a computation fails some of its results count and others do not, so nothing more is computed or resolved. What
    came out before can still be received. A device that finds no room for what was sent has taken nothing of it, unless
    parts went before.

    Args:
        job: one pass over feeds.
        mode: what `resolve` does with the state.
        observe: what is to be known of it.

    Attributes:
        record: what it has done.
    """

    def __init__(self, job: PlannedJob, mode: Mode, observe: Observe | None = None) -> None:
        self.plan = plan = job.plan
        self.mode = mode
        (self._pass,) = plan.passes
        self._feeds = {stage.name: stage for stage in self._pass.sources}
        self._roots = sorted(self._pass.sinks, key=lambda sink: sink.root)
        self._streams = [sink for sink in self._roots if sink.spec.is_stream]
        self._executor: Executor = job.executor(0, {})
        self.record = FlowRecord(plan, self._executor, observe or Observe())
        self._dead_letters = find_dead_letters(plan.graph)
        for skip_counter in self._executor.skip_counters:
            skip_counter.dead_letters = self._dead_letters.get(skip_counter.policy)
            self.record.skips.watch(skip_counter)
        self._results: deque[dict[int, np.ndarray]] = deque()
        self._waiting_bytes = 0
        self._counting = threading.Lock()
        self._starts: dict[int, int] = {}
        self._seq = 0
        self._ended = False
        self._failure: BaseException | None = None
        self.begin()

    def open(self) -> None:
        """Compile and allocate everything, begin dead-letter files, and tell those who observe it."""
        try:
            self.record.open()
            self._executor.open()
            for dead_letters in self._dead_letters.values():
                dead_letters.open()
            self.record.begin()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release everything, and complete dead-letter files."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.record.observers.close)
            stack.callback(self.record.end, self._failure)
            stack.callback(self._results.clear)
            for dead_letters in self._dead_letters.values():
                stack.callback(dead_letters.commit)
            stack.callback(self._executor.close)

    @property
    def skipped(self) -> dict[str, Skipped]:
        """The records that each element has dropped since the flow was opened."""
        dropped = self.record.skips.by_policy()
        return {name: dropped[policy] for policy, name in policies(self.plan.graph).items()}

    def begin(self) -> None:
        """Begin anew: nothing has been sent."""
        self._ended = False
        self._failure = None
        self._starts = {clock.id: 0 for clock in self._pass.clocks if clock.is_root}

    @property
    def ended(self) -> bool:
        """True when the streams have ended."""
        return self._ended

    def check(self) -> None:
        """Refuse to go on where a computation has failed.

        Raises:
            RunError: naming what failed.
        """
        if self._failure is not None:
            raise RunError(
                "cannot go on: the flow has failed, and what its folds and windows held is lost",
                element="flow",
                got=f"{type(self._failure).__name__}: {str(self._failure).splitlines()[0]}",
                hint="open it again, and send again what is to count",
            ) from self._failure

    @contextlib.contextmanager
    def _computing(self, arrays: Mapping[str, np.ndarray] | None = None) -> Iterator[None]:
        """Compute within: what fails fails the flow; what it takes is told, with what was sent."""
        self.check()
        began_s, taken = time.perf_counter(), self._executor.taken
        try:
            yield
        except BaseException as error:
            intact = arrays is not None and taken == self._executor.taken and not self._pass.folds_at_once
            if not (intact and isinstance(error, DeviceFullError)):
                self._failure = error
            self.record.sent({}, began_s, "failing")
            raise
        self.record.wait(len(self._results), self._waiting_bytes)
        self.record.sent(arrays or {}, began_s, "ending" if arrays is None else "computing")

    # -- state ------------------------------------------------------------------------------

    @property
    def sent(self) -> dict[str, int]:
        """Records sent since the flow began, or began anew, by feed."""
        return {
            stage.name: self._starts[clock.id]
            for clock in self._pass.clocks
            if clock.is_root
            for stage in clock.sources
        }

    def snapshot(self) -> State:
        """Return all that the flow holds, results that wait included, as plain data and arrays.

        Raises:
            RunError: if it has failed.
            CheckpointError: if it writes dead letters, which may have their final names already.
        """
        self.check()
        if self._dead_letters:
            raise CheckpointError(
                "cannot freeze a flow that writes dead letters",
                element="flow",
                hint='use on_error="skip", whose counts are kept, or a run over a file',
            )
        key = self.plan.graph.kept_id
        return {
            "executor": self._executor.snapshot(),
            "starts": {str(clock): start for clock, start in self._starts.items()},
            "seq": self._seq,
            "ended": self._ended,
            "results": [{str(key(value)): array for value, array in made.items()} for made in self._results],
        }

    def restore(self, state: State) -> None:
        """Go on from a snapshot; called once it is open."""
        self._executor.restore(state["executor"])
        self._starts = {int(clock): start for clock, start in state["starts"].items()}
        self._seq, self._ended = state["seq"], state["ended"]
        nodes = self.plan.graph.nodes_by_kept_id()
        self._results = deque({nodes[int(key)].id: array for key, array in made.items()} for made in state["results"])
        self._waiting_bytes = sum(array.nbytes for made in self._results for array in made.values())

    def carried(self) -> dict[str, Any]:
        """Return what each scan carries, by its name. That of a scan in tiles has its place in one."""
        self.check()
        state = self._executor.snapshot()
        places, nodes = self._places_in_tiles(state), self.plan.graph.nodes_by_kept_id()
        carried = {}
        for key, one in state["scans"].items():
            place = places.get(key)
            carried[nodes[int(key)].name] = one if place is None else one | {_PLACE: place}
        return carried

    def carry_on(self, carried: Mapping[str, Any]) -> None:
        """Let scans go on from what others have carried, by name; called between two sends.

        Raises:
            RunError: for a name that no scan has, and if a scan in tiles would go on at another place in one.
        """
        self.check()
        state = self._executor.snapshot()
        nodes = self.plan.graph.nodes_by_kept_id()
        names = {nodes[int(key)].name: key for key in state["scans"]}
        places = self._places_in_tiles(state)
        for name, one in carried.items():
            if name not in names:
                raise RunError(
                    "cannot carry on: the flow has no such scan",
                    element="flow",
                    expected=", ".join(sorted(names)) or "nothing, since it has no scans",
                    got=repr(name),
                )
            own = places.get(names[name])
            if own is not None:
                place = one.get(_PLACE, own)
                if place != own:
                    raise RunError(
                        "cannot carry on at another place in a tile",
                        element=name,
                        expected=f"a flow that has taken {own} records since the tile began",
                        got=f"one that has taken {place}",
                        hint="flow.freeze(path) and fc.thaw(path).flow() go on anywhere",
                    )
                one = {key: part for key, part in one.items() if key != _PLACE}
            state["scans"][names[name]] = one
        self._executor.restore(state)

    def _places_in_tiles(self, state: Mapping[str, Any]) -> dict[str, int]:
        """Return by key of a scan how many records it has taken since its tile began, for those that have tiles."""
        nodes, starts = self.plan.graph.nodes_by_kept_id(), state["clocks"]["starts"]
        places: dict[str, int] = {}
        for key in state["scans"]:
            node = nodes[int(key)]
            if tile := tile_records(node):
                places[key] = starts[self._pass.clock_of(node.id).id] % tile
        return places

    # -- in ---------------------------------------------------------------------------------

    def records(self, array: npt.ArrayLike | None, named: Mapping[str, npt.ArrayLike]) -> dict[str, np.ndarray]:
        """Return what was sent, by feed, checked.

        Raises:
            RunError: if feeds are missing, unknown or of unequal length, or records do not fit.
        """
        if array is not None and len(self._feeds) == 1 and not named:
            named = dict.fromkeys(self._feeds, array)
        elif array is not None or set(named) != set(self._feeds):
            names = ", ".join(sorted(self._feeds))
            raise RunError(
                "cannot send this: send takes one array for each feed",
                element="flow",
                expected="one array"
                if len(self._feeds) == 1
                else f"send({', '.join(f'{n}=...' for n in self._feeds)})",
                got=", ".join(sorted(named)) or ("an array without a name" if array is not None else "nothing"),
                hint=f"the feeds are {names}; fc.feed(..., name=...) names them",
            )
        arrays = {}
        for name, stage in self._feeds.items():
            assert isinstance(stage.element, FeedSource)
            arrays[name] = stage.element.accept(named[name], name)
        for clock in self._pass.clocks:
            lengths = {stage.name: len(arrays[stage.name]) for stage in clock.sources}
            if len(set(lengths.values())) > 1:
                raise RunError(
                    "cannot compute: feeds that meet were sent unequal numbers of records",
                    element="flow",
                    expected="equally many",
                    got=", ".join(f"{name}: {length}" for name, length in lengths.items()),
                )
        return arrays

    def send(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Compute with records; what comes out waits to be received."""
        made: dict[int, list[np.ndarray]] = {sink.value: [] for sink in self._streams}
        with self._computing(arrays):
            for clock in self._pass.clocks:
                if clock.is_root:
                    self._send_to(clock.id, clock.sources, arrays, made)
            self._keep(made)

    def _send_to(
        self,
        clock: int,
        sources: tuple[SourceStage, ...],
        arrays: Mapping[str, np.ndarray],
        made: dict[int, list[np.ndarray]],
    ) -> None:
        records = len(arrays[sources[0].name])
        step = self._pass.clocks[clock].batch_items
        for first in range(0, records, step):
            items = min(step, records - first)
            start = self._starts[clock]
            parts = {stage.value: arrays[stage.name][first : first + items] for stage in sources}
            batch = Batch(self._seq, start, start + items, parts, clock)
            outputs = self._outputs(clock, items)
            self._take(self._executor.process(batch, outputs), outputs, made)
            self._starts[clock] = start + items
            self._seq += 1
            self._drain(made)

    def _drain(self, made: dict[int, list[np.ndarray]]) -> None:
        while self._executor.wants() == DRAIN:
            outputs = self._outputs(DRAIN, 0)
            self._take(self._executor.drain(outputs), outputs, made)

    def _outputs(self, root: int, items: int) -> dict[int, np.ndarray]:
        """Fresh memory for what may come out: it is given away."""
        outputs = {}
        for sink in {sink.value: sink for sink in self._streams}.values():
            clock = self._pass.clock_of(sink.value)
            if clock.is_root and clock.id != root:
                continue
            room = items if clock.is_root else clock.batch_items
            outputs[sink.value] = np.empty((room, *sink.spec.shape), sink.spec.dtype)
        return outputs

    @staticmethod
    def _take(
        ranges: Mapping[int, tuple[int, int]], outputs: Mapping[int, np.ndarray], made: dict[int, list[np.ndarray]]
    ) -> None:
        for value, (start, stop) in ranges.items():
            if stop > start:
                made[value].append(outputs[value][: stop - start])

    def _keep(self, made: dict[int, list[np.ndarray]]) -> None:
        if not self._streams:
            return
        joined = {}
        for sink in self._streams:
            parts = made[sink.value]
            empty = np.empty((0, *sink.spec.shape), sink.spec.dtype)
            joined[sink.value] = parts[0] if len(parts) == 1 else np.concatenate([empty, *parts])
        with self._counting:
            self._waiting_bytes += sum(array.nbytes for array in joined.values())
            self._results.append(joined)
        room_bytes = self.plan.memory.budget_bytes - self.plan.memory.host_bytes
        if self._waiting_bytes > max(room_bytes, 0):
            raise RunError(
                "cannot go on: results that nobody received outgrow the memory budget",
                element="flow",
                expected=f"at most {max(room_bytes, 0)} bytes that wait",
                got=f"{self._waiting_bytes} bytes in {len(self._results)} results",
                hint="call receive() after each send(), or raise memory=",
            )

    # -- out --------------------------------------------------------------------------------

    @property
    def gives_streams(self) -> bool:
        """True where there is a result for each send."""
        return bool(self._streams)

    @property
    def waiting(self) -> int:
        """Results that have not been received."""
        return len(self._results)

    def receive(self) -> Result:
        """Return the result of the earliest send that has not been received.

        Raises:
            RunError: if there is none.
        """
        if not self._results:
            folds = not self._streams
            raise RunError(
                "cannot receive: there is nothing to receive",
                element="flow",
                got="a flow that gives one value for all records" if folds else "every send was received already",
                hint="flow.resolve() gives the value" if folds else "send first: there is one receive for each send",
            )
        with self._counting:
            made = self._results.popleft()
            self._waiting_bytes -= sum(array.nbytes for array in made.values())
            self.record.wait(len(self._results), self._waiting_bytes)
        for sink in self._streams:
            self.record.gave(sink.name, len(made[sink.value]), made[sink.value].nbytes)
        values = tuple(made[sink.value] for sink in self._streams)
        return values[0] if len(values) == 1 else values

    def end(self) -> bool:
        """End the streams, once: what windows and cuts still hold comes out as one more result, if it is any."""
        made: dict[int, list[np.ndarray]] = {sink.value: [] for sink in self._streams}
        with self._computing():
            if self._ended:
                return False
            self._ended = True
            for clock in [clock.id for clock in self._pass.clocks if clock.is_root]:
                outputs = self._outputs(DRAIN, 0)
                self._take(self._executor.end(clock, outputs), outputs, made)
                self._drain(made)
            if any(made.values()):
                self._keep(made)
                return True
        return False

    def resolve(self) -> Result:
        """Return the values of the roots; see `Flow.resolve`. In "reset" mode all begins anew, even on failure."""
        self.check()
        try:
            if self.mode == "reset":
                self.end()
            return self._values(self._executor.finish())
        finally:
            if self.mode == "reset":
                self._results.clear()
                self._waiting_bytes = 0
                self._executor.reset()
                self.begin()

    def _values(self, resident: Mapping[int, np.ndarray]) -> Result:
        parts: dict[int, list[np.ndarray]] = {sink.value: [] for sink in self._streams}
        while self._results:
            for value, array in self._results.popleft().items():
                parts[value].append(array)
        self._waiting_bytes = 0
        self.record.wait(0, 0)
        values = []
        for sink in self._roots:
            if sink.spec.is_stream:
                values.append(np.concatenate([np.empty((0, *sink.spec.shape), sink.spec.dtype), *parts[sink.value]]))
                self.record.gave(sink.name, len(values[-1]), values[-1].nbytes)
            else:
                whole = resident[sink.value].copy()
                self.record.gave(sink.name, 1, whole.nbytes)
                values.append(whole[()] if whole.ndim == 0 else whole)
        return values[0] if len(values) == 1 else tuple(values)
