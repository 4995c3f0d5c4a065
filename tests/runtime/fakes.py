"""Sources, destinations and a backend that count what is done to them and fail when told to."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.elements.destination import Destination, Writer
from flowcompute.elements.source import AsyncReader, Reader, Source
from flowcompute.engine.backend import Backend, Executor, PlannedJob
from flowcompute.gpu.render import render
from flowcompute.graph.graph import Graph
from flowcompute.ir.capabilities import DeviceCapabilities
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.plan import Clock, MemoryPlan, Pass, SinkStage, SourceStage
from flowcompute.schedule.shaping import Shaping
from flowcompute.spec import INT64, Spec, Stream
from flowcompute.strategy.config import Config
from flowcompute.strategy.strategy import Strategy

STREAM = Spec(INT64, (3,), Stream(None))
NUMBER = Spec(INT64, (), None)


class Boom(Exception):
    """What a fault raises."""


class Scene:
    """Everything that one job opens, and what happened to it.

    `fault` is (operation, k): the k-th such operation raises Boom. `hooks` are called at the
    beginning of each operation of their name, with its number.
    """

    def __init__(self, fault: tuple[str, int] | None = None) -> None:
        self.fault = fault
        self.counts: Counter[str] = Counter()
        self.hooks: dict[str, Callable[[int], object]] = {}
        self.readers: list[FakeReader | FakeAsyncReader] = []
        self.writers: list[FakeWriter] = []
        self.executors: list[FakeExecutor] = []
        self._lock = threading.Lock()
        self.running = 0

    def step(self, operation: str) -> None:
        with self._lock:
            number = self.counts[operation]
            self.counts[operation] += 1
        if operation in self.hooks:
            self.hooks[operation](number)
        if self.fault == (operation, number):
            raise Boom(f"{operation} {number}")

    def assert_put_away(self, *, committed: bool) -> None:
        """Every opened thing was closed exactly once, and no thread of ours is at work."""
        assert [reader.closed for reader in self.readers] == [1] * len(self.readers)
        assert [executor.closed for executor in self.executors] == [1] * len(self.executors)
        ends = [writer.ends for writer in self.writers]
        if committed:
            assert ends == [["commit"]] * len(ends)
        else:
            for writer in self.writers:
                # One that failed to commit is aborted, and one that had committed before stays.
                assert writer.ends in (["abort"], ["commit failed", "abort"], ["commit"])
        ours = [thread.name for thread in threading.enumerate() if thread.name.startswith("flowcompute")]
        assert ours == []


def records(length: int, first: int = 0) -> np.ndarray:
    """`length` records that all differ."""
    return np.arange(first, first + length * 3, dtype=np.int64).reshape(length, 3)


class FakeSource(Source):
    """Gives `data`; declares `spec`; by views when asked, else by reads."""

    def __init__(self, scene: Scene, data: np.ndarray, *, views: bool, length: int | None, name: str) -> None:
        super().__init__(Spec(data.dtype, data.shape[1:], Stream(length)), name=name)
        self.freeze_fields(scene=scene, data=data, views=views)

    def open(self, *, position: int = 0, mapped: bool = True) -> FakeReader:
        self.scene.step("open source")
        reader = FakeReader(self, mapped=mapped)
        self.scene.readers.append(reader)
        return reader


class FakeReader(Reader):
    def __init__(self, source: FakeSource, *, mapped: bool) -> None:
        self.source = source
        self.mapped = mapped
        self.closed = 0

    def _next(self, items: int) -> np.ndarray:
        self.source.scene.step(f"read {self.element}")
        found = self.source.data[self.position : self.position + items]
        self.position += len(found)
        return found

    def read(self, out: np.ndarray) -> int:
        assert out.flags.c_contiguous
        assert out.ctypes.data % 128 == 0
        found = self._next(len(out))
        out[: len(found)] = found
        return len(found)

    def view(self, items: int) -> np.ndarray | None:
        return self._next(items) if self.source.views else None

    def check(self) -> None:
        self.source.scene.step("check")

    def close(self) -> None:
        self.closed += 1
        self.source.scene.step("close source")


class FakeAsyncSource(Source):
    """Gives what `read` gives: an async function of the buffer."""

    def __init__(self, scene: Scene, read: Callable[[np.ndarray], Any], *, name: str) -> None:
        super().__init__(STREAM, name=name)
        self.freeze_fields(scene=scene, read=read)

    def open(self, *, position: int = 0, mapped: bool = True) -> FakeAsyncReader:
        reader = FakeAsyncReader(self.read)
        self.scene.readers.append(reader)
        return reader


class FakeAsyncReader(AsyncReader):
    def __init__(self, read: Callable[[np.ndarray], Any]) -> None:
        self._read = read
        self.closed = 0

    async def read_async(self, out: np.ndarray) -> int:
        return await self._read(out)

    def close(self) -> None:
        self.closed += 1


class FakeSink(Destination):
    """Keeps what is written; with `place` it offers memory of its own for that many records."""

    def __init__(
        self, scene: Scene, *, name: str, place: int | None = None, in_memory: bool = False, spec: Spec = STREAM
    ) -> None:
        super().__init__(spec, name=name)
        self.freeze_fields(scene=scene, place=place, in_memory=in_memory)

    def open(self, spec: Spec) -> FakeWriter:
        self.scene.step("open sink")
        writer = FakeWriter(self, spec)
        self.scene.writers.append(writer)
        return writer


class FakeWriter(Writer):
    def __init__(self, sink: FakeSink, spec: Spec) -> None:
        self.sink = sink
        self.spec = spec
        self.pieces: list[np.ndarray] = []
        self.ends: list[str] = []
        self.position = 0
        self.memory = None if sink.place is None else np.zeros((sink.place, *spec.shape), spec.dtype)

    def buffer(self, start: int, stop: int) -> np.ndarray | None:
        return None if self.memory is None else self.memory[start:stop]

    def write(self, array: np.ndarray, start: int) -> None:
        assert not self.ends
        self.sink.scene.step(f"write {self.sink.name}")
        if self.spec.stream is None:
            assert start == 0
            self.pieces.append(array.copy())
            return
        assert start == self.position, "records come in order and without gaps"
        self.position += len(array)
        if self.memory is None:
            self.pieces.append(array.copy())
        else:
            assert np.shares_memory(array, self.memory), "its own memory is written in place"

    def commit(self) -> Any:
        try:
            self.sink.scene.step("commit")
        except Boom:
            self.ends.append("commit failed")
            raise
        self.ends.append("commit")
        if self.spec.stream is None:
            return self.pieces[0]
        if self.memory is not None:
            return self.memory[: self.position]
        empty = np.empty((0, *self.spec.shape), self.spec.dtype)
        return np.concatenate([empty, *self.pieces])

    def abort(self) -> None:
        self.ends.append("abort")
        self.sink.scene.step("abort")


Function = Callable[[dict[int, np.ndarray]], np.ndarray]


class FakeExecutor(Executor):
    """Computes each stream value by a function of the sources, and folds the sum of one of them.

    With several batches in flight it computes on copies, `uploaded` and `made`, one of each for a slot.
    """

    def __init__(
        self, scene: Scene, functions: Mapping[int, Function], folds: Mapping[int, int], in_flight: int = 1
    ) -> None:
        self.in_flight = in_flight
        self.uploaded: dict[int, tuple[int, dict[int, np.ndarray]]] = {}
        self.made: dict[int, tuple[int, list[tuple[np.ndarray, np.ndarray]]]] = {}
        self.scene = scene
        self.functions = functions
        self.folds = folds
        self.totals = {value: np.int64(0) for value in folds}
        self.seqs: list[tuple[int, int, int]] = []
        self.closed = 0
        self.records = 0
        self.ended = False

    def open(self) -> None:
        self.scene.step("open executor")

    def reset(self) -> None:
        raise AssertionError("runs are not reset")

    def wants(self) -> int | None:
        return None if self.ended else 0

    def end(self, clock: int, outputs: Mapping[int, np.ndarray]) -> dict[int, tuple[int, int]]:
        del clock, outputs
        self.ended = True
        return {}

    def drain(self, outputs: Mapping[int, np.ndarray]) -> dict[int, tuple[int, int]]:
        raise AssertionError("one clock leaves nothing to drain")

    def upload(self, batch: Batch) -> int:
        self.scene.step("upload")
        slot = batch.seq % self.in_flight
        assert slot not in self.uploaded
        assert slot not in self.made, "the batch before it in this slot has not been downloaded"
        self.uploaded[slot] = (batch.seq, {value: array.copy() for value, array in batch.arrays.items()})
        return 1

    def download(self, batch: Batch) -> int:
        self.scene.step("download")
        seq, made = self.made.pop(batch.seq % self.in_flight)
        assert seq == batch.seq
        for out, array in made:
            out[...] = array
        return 1

    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> dict[int, tuple[int, int]]:
        self.scene.step("process")
        self.launches += 1
        self.seqs.append((batch.seq, batch.start, batch.stop))
        arrays = batch.arrays
        if self.in_flight > 1:
            seq, arrays = self.uploaded.pop(batch.seq % self.in_flight)
            assert seq == batch.seq
        results = [(out, np.broadcast_to(self.functions[value](arrays), out.shape)) for value, out in outputs.items()]
        if self.in_flight > 1:
            self.made[batch.seq % self.in_flight] = (batch.seq, results)
        else:
            for out, array in results:
                out[...] = array
        for value, source in self.folds.items():
            self.totals[value] += arrays[source].sum()
        self.records = batch.stop
        return dict.fromkeys(outputs, (batch.start, batch.stop))

    def finish(self) -> dict[int, np.ndarray]:
        self.scene.step("finish")
        return {value: np.asarray(total) for value, total in self.totals.items()}

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        raise AssertionError

    def step_seconds(self) -> dict[str, tuple[int, float]]:
        return {"step": (len(self.seqs), 0.25 * len(self.seqs))}

    def close(self) -> None:
        self.closed += 1
        self.scene.step("close executor")


class FakeBackend(Backend):
    description = BackendDescription(
        DeviceCapabilities("fake", "fake", "numpy", True, True, 1 << 30, 1 << 30, 1 << 15, 1), render
    )

    def __init__(
        self, scene: Scene, functions: Mapping[int, Function], folds: Mapping[int, int], in_flight: int
    ) -> None:
        self._make = lambda: FakeExecutor(scene, functions, folds, in_flight)
        self._scene = scene

    def executor(self, plan: Plan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        executor = self._make()
        self._scene.executors.append(executor)
        return executor


@dataclass
class Job:
    """A plan in the making: values are numbered by hand, sources first."""

    scene: Scene
    batch_items: int = 4
    depth: int = 2
    sources: list[SourceStage] = field(default_factory=list)
    sinks: list[SinkStage] = field(default_factory=list)
    functions: dict[int, Function] = field(default_factory=dict)
    folds: dict[int, int] = field(default_factory=dict)
    length: int | None = None
    room_bytes: int = 1 << 20
    input: str | None = None
    passes: int = 1
    overlapped: bool = False

    def source(self, name: str, data: np.ndarray, *, views: bool = False, length: int | None = None) -> int:
        element = FakeSource(self.scene, data, views=views, length=length, name=name)
        return self.add(name, element)

    def add(self, name: str, element: Source) -> int:
        value = len(self.sources)
        self.sources.append(SourceStage(value, name, element, element.spec))
        if element.spec.length is not None:
            self.length = element.spec.length
        return value

    def sink(self, name: str, value: int, *, place: int | None = None, in_memory: bool = False) -> None:
        spec = NUMBER if value in self.folds else Spec(INT64, (3,), Stream(self.length))
        element = FakeSink(self.scene, name=name, place=place, in_memory=in_memory, spec=spec)
        self.sinks.append(SinkStage(value, name, element, spec, len(self.sinks)))

    def planned(self) -> PlannedJob:
        backend = FakeBackend(self.scene, self.functions, self.folds, self.depth if self.overlapped else 1)
        values = {sink.value for sink in self.sinks} | {source.value for source in self.sources}
        clock = Clock(
            id=0,
            sources=tuple(self.sources),
            entries=(),
            steps=(SimpleNamespace(name="step"),),
            length=self.length,
            batch_items=self.batch_items,
            values=frozenset(values),
        )
        each = Pass(clocks=(clock,), before=(), after=(), sinks=tuple(self.sinks))
        plan = Plan(
            graph=Graph((), ()),
            asked=Graph((), ()),
            shaping=Shaping(float64=True, fused=False),
            passes=(each,) * self.passes,
            folds={},
            host_folds={},
            backend=backend.description,
            config=Config(self.room_bytes),
            strategy=Strategy(input=self.input),
            memory=MemoryPlan(self.room_bytes, 0, ()),
            depth=self.depth,
            reasons=(),
        )
        return PlannedJob(plan, backend)


def full_job(scene: Scene, *, length: int = 10, known: bool = True, **options: Any) -> Job:
    """Two sources (buffers, views), a value with two sinks, one written in place, a fold."""
    job = Job(scene, **{"depth": 1, **options})
    a = job.source("a", records(length), length=length if known else None)
    b = job.source("b", records(length, 1000), views=True, length=length if known else None)
    job.functions = {10: lambda x: x[a] + x[b], 11: lambda x: 2 * x[a]}
    job.folds = {12: a}
    job.sink("twice_1", 10)
    job.sink("twice_2", 10)
    job.sink("placed", 11, place=length)
    job.sink("total", 12)
    return job


def full_values(length: int = 10) -> list[np.ndarray]:
    """What `full_job` gives."""
    a, b = records(length), records(length, 1000)
    return [a + b, a + b, 2 * a, a.sum()]
