"""Kernels of a step that memory bounds: their bytes a second beside the device's own copy, and torch's seconds.

Trainers take a step each. Seconds are those that a launch adds to a queue of copies on a GPU, less those that an empty
kernel adds: right after its own launch it is launched again behind each of some copies of 128 MiB. So no kernel finds
its values in a cache, and none is charged for time stamps and its start. Events, which are shown beside, have 5 to 10
microseconds more. What an empty kernel adds is printed, so that a step's sum with all starts can be told.

Bytes are those of all values that a kernel takes and gives, each once. A view reads a part: where nothing is reduced,
an input counts no more numbers than the largest output has. Kernels that multiply matrices, or attend, are left out,
with what is computed in them. So are those that merge blocks of folds. Kernels below a thousandth of the step are not
shown; "all" has them.

torch compiles the same loss. Its kernels are those that its profiler names, without products and attention. The
profiler gives durations of kernels alone too, as they find the cache in a step: an empty one has 1 to 2 microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

import flowcompute as fc
from benchmarks.training.loops import parameters
from benchmarks.training.models import Model
from flowcompute.gpu.device import Device
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.programs import build
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.ir.kernel import Kernel

COPY_BYTES = 1 << 30
BETWEEN_BYTES = 128 << 20
"""Bytes of the copies between launches of a kernel: more than caches of GPUs hold."""

LAUNCHES = 16
"""Launches of a kernel that are timed together."""

_COPY = """
__kernel void copied(__global const float4 *x, __global float4 *y, const int n) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = x[i];
}
__kernel void nothing(__global float4 *y) { if (get_global_id(0) > 0) y[0] = 0; }
"""
_COPY_ITEMS, _COPY_GROUP = 1 << 20, 512

BOUND_BY_MEMORY = ("map", "rows", "gather", "columns", "transpose")
"""Words of forms that memory bounds."""

MULTIPLY = ("gemm", "cutlass", "nvjet", "xmma", "flash", "fmha", "cudnn", "sm90_", "sm80_", "Memcpy", "Memset")
"""Words of names of torch's kernels that multiply or attend, and of copies."""


@dataclass(frozen=True)
class Launched:
    """A launch of a step.

    Attributes:
        seconds: that it adds to a queue beyond a start; on devices in the host's memory those of its event.
        event_s: seconds of its event.
        form: of the kernel; empty for those that merge folds, and multiply for them.
        size_bytes: that it needs.
        names: of the nodes whose values it stores.
    """

    seconds: float
    event_s: float
    form: str = ""
    size_bytes: int = 0
    names: str = ""

    @property
    def is_bound_by_memory(self) -> bool:
        """Flag that no product and no attention is in it."""
        return _is_bound_by_memory(self.form)


def _is_bound_by_memory(form: str) -> bool:
    return any(one in form for one in BOUND_BY_MEMORY)


class QueueOfCopies:
    """Copies of 128 MiB, one after the other, behind some that last as long as the host takes to enqueue all."""

    def __init__(self, device: Device) -> None:
        self._queue = cl.CommandQueue(device.context, device.handle)
        self._buffers = [cl.Buffer(device.context, cl.mem_flags.READ_WRITE, COPY_BYTES) for _ in range(2)]
        program = build(device, _COPY)
        self._kernel, nothing = cl.Kernel(program, "copied"), cl.Kernel(program, "nothing")
        nothing.set_args(self._buffers[0])
        self._alone_s = median(self._spent_s(None) for _ in range(5))
        self._empty_s = median(self._spent_s((nothing, (1,), (1,))) for _ in range(5))

    @property
    def start_s(self) -> float:
        """Seconds that an empty kernel adds to each copy."""
        return (self._empty_s - self._alone_s) / LAUNCHES

    def added_s(self, kernel: Any, groups: int, work_group: int) -> float:
        """Return the seconds that a launch of a kernel, whose arguments are set, adds to each copy beyond its start."""
        return (self._spent_s((kernel, (groups * work_group,), (work_group,))) - self._empty_s) / LAUNCHES

    def _spent_s(self, launch: tuple[Any, ...] | None) -> float:
        self._queue.finish()
        begin = time.perf_counter()
        for _ in range(4):
            self._copy(COPY_BYTES)
        for _ in range(LAUNCHES):
            self._copy(BETWEEN_BYTES)
            if launch is not None:
                cl.enqueue_nd_range_kernel(self._queue, *launch)
        self._queue.finish()
        return time.perf_counter() - begin

    def _copy(self, size_bytes: int) -> None:
        self._kernel.set_args(*self._buffers, np.int32(size_bytes // 16))
        cl.enqueue_nd_range_kernel(self._queue, self._kernel, (_COPY_ITEMS,), (_COPY_GROUP,))

    def release(self) -> None:
        """Release its buffers."""
        for one in self._buffers:
            one.release()


def needed_bytes(runner: OpenCLRunner, kernel: Kernel, items: int) -> int:
    """Return the bytes of the values that a kernel takes and gives."""
    sizes: dict[tuple[str, int], tuple[int, int]] = {}
    for one in kernel.arguments:
        if one.kind in ("input", "output") and one.value >= 0:
            spec = runner.nodes[one.value].spec
            numbers = spec.item_numbers * (items if spec.is_stream else 1)
            sizes[one.kind, one.value] = numbers, spec.dtype.itemsize
    most = max((numbers for (kind, _), (numbers, _) in sizes.items() if kind == "output"), default=0)
    if most and kernel.form in ("map", "rows", "gather", "transpose"):
        sizes = {key: (min(numbers, most), each) for key, (numbers, each) in sizes.items()}
    return sum(numbers * each for numbers, each in sizes.values())


class Watch:
    """The launches of all runners while it is entered. The first one of the process gives devices their queue.

    Launches that memory bounds are timed at once: only then buffers are known to hold what kernels read, as indices.

    Attributes:
        launched: once it is left.
        device: that was launched on last.
        start_s: seconds that an empty kernel adds to a queue.
    """

    def __init__(self) -> None:
        self.launched: list[Launched] = []
        self.device: Any = None
        self.start_s = 0.0
        self._about: tuple[Any, ...] = ()
        self._timed: list[tuple[Callable[[], float], float | None, tuple[Any, ...]]] = []
        self._copies: QueueOfCopies | None = None
        self._patches = ExitStack()

    def __enter__(self) -> Watch:
        run, enqueue = OpenCLRunner._launch, LocalLauncher.launch

        def noted(runner: OpenCLRunner, kernel: Kernel, values: list[Any], groups: int, items: int, **more: Any) -> Any:
            made = [str(runner.nodes[one.value].name) for one in kernel.arguments if one.kind in ("output", "partial")]
            self._about = kernel.form, needed_bytes(runner, kernel, items), ", ".join(dict.fromkeys(made))
            try:
                return run(runner, kernel, values, groups, items, **more)
            finally:
                self._about = ()

        def launch(launcher: LocalLauncher, *given: Any, timed: bool, deferred: bool = False) -> Any:
            self.device = launcher._device
            seconds = enqueue(launcher, *given, timed=True, deferred=deferred)
            assert seconds is not None
            added_s = None
            if self._about and _is_bound_by_memory(self._about[0]) and not self.device.capabilities.host_memory:
                self.device.queue.finish()
                self._copies = self._copies or QueueOfCopies(self.device)
                kernel, _, groups, work_group, *_ = given
                added_s = self._copies.added_s(kernel, groups, work_group)
            self._timed.append((seconds, added_s, self._about))
            return seconds if timed else None

        make = Device._make_queue
        queues = mock.patch.object(Device, "_make_queue", lambda device, **_: make(device, profiling=True))
        self._patches.enter_context(queues)
        self._patches.enter_context(mock.patch.object(Device, "timing_queue", property(lambda device: device.queue)))
        self._patches.enter_context(mock.patch.object(OpenCLRunner, "_launch", noted))
        self._patches.enter_context(mock.patch.object(LocalLauncher, "launch", launch))
        return self

    def __exit__(self, *_: object) -> None:
        if self.device is not None:
            self.device.queue.finish()
        self._patches.close()
        if self._copies is not None:
            self.start_s = self._copies.start_s
            self._copies.release()
        for seconds, added_s, about in self._timed:
            event_s = seconds()
            self.launched.append(Launched(event_s if added_s is None else added_s, event_s, *about))


def copy_s(device: Any, reps: int) -> float:
    """Return the median seconds of a copy of 1 GiB, of which the first does not count."""
    queue = device.queue
    a, b = (cl.Buffer(device.context, cl.mem_flags.READ_WRITE, COPY_BYTES) for _ in range(2))
    spent = []
    for _ in range(reps + 1):
        event = cl.enqueue_copy(queue, b, a)
        event.wait()
        spent.append(float(event.profile.end - event.profile.start) * 1e-9)
    for one in (a, b):
        one.release()
    return median(spent[1:])


def kernel_rows(name: str, model: Model, optimizer: Any, device: str, reps: int, **options: Any) -> float:
    """Print the kernels of a step that memory bounds, and return the seconds of all of them.

    Args:
        name: of the row.
        model: whose loss is taken; the records are those of its first step.
        optimizer: of `fc.train`.
        device: what computes.
        reps: steps, after one that does not count.
        options: those of `Trainer`.
    """
    steps: list[list[Launched]] = []
    copies_s, starts_s = [], []
    for _ in range(reps + 1):
        p = parameters(model)
        with fc.train.Trainer([*p.values()], optimizer, device=device, **options) as trainer, Watch() as watch:
            trainer.step(model.by_flowcompute(p, *(fc.source(one[model.part(0)]) for one in model.data)))
        steps.append(watch.launched)
        copies_s.append(copy_s(watch.device, 3))
        starts_s.append(watch.start_s)
    print(f"{name}: an empty kernel adds {1e6 * median(starts_s):.2f} us to a queue")
    return _print(name, [*zip(*steps[1:], strict=True)], 2 * COPY_BYTES / median(copies_s[1:]))


def _print(name: str, launches: Sequence[Sequence[Launched]], limit: float) -> float:
    """Print launches, each of which has a record for each repetition."""
    seconds = [median(one.seconds for one in each) for each in launches]
    events_s = [median(one.event_s for one in each) for each in launches]
    step_s = sum(events_s)
    print(f"{name}: {len(launches)} launches, events of {1e3 * step_s:.3f} ms; a copy moves {limit / 1e9:.0f} GB/s")
    print(f"{'kernel':18}{'MiB':>9}{'ms':>9}{'GB/s':>8}{'of copy':>9}{'event':>9}  stores")
    shown: dict[tuple[str, int, str], list[tuple[float, float, Launched]]] = {}
    for spent, event_s, (one, *_) in zip(seconds, events_s, launches, strict=True):
        if one.is_bound_by_memory:
            key = one.form, one.size_bytes, "".join(letter for letter in one.names if not letter.isdigit())
            shown.setdefault(key, []).append((spent, event_s, one))

    def row(what: str, size: float, spent: float, event_s: float, names: str = "") -> None:
        rate = size / spent
        left = f"{what:18}{size / 2**20:9.1f}{1e3 * spent:9.4f}{rate / 1e9:8.0f}{rate / limit:9.2f}{1e3 * event_s:9.4f}"
        print(f"{left}  {names[:90]}", flush=True)

    for (form, size, _), ones in shown.items():
        spent, event_s = (median(each[place] for each in ones) for place in (0, 1))
        if event_s * len(ones) > 1e-3 * step_s:
            row(f"{len(ones)} x {form}" if len(ones) > 1 else form, size, spent, event_s, ones[0][2].names)
    found = [one for ones in shown.values() for one in ones]
    total_s = sum(spent for spent, _, _ in found)
    row("all", sum(one.size_bytes for *_, one in found), total_s, sum(event_s for _, event_s, _ in found))
    return total_s


def torch_rows(name: str, model: Model, make: Callable[[Any], Any], reps: int) -> None:
    """Print torch's kernels of such a step, from the profiler; `make` makes the optimizer of the parameters."""
    import torch  # noqa: PLC0415 - a peer that may be missing

    p = {key: torch.tensor(value, requires_grad=True, device="cuda") for key, value in model.first.items()}
    update = make([*p.values()])
    data = [torch.from_numpy(one[model.part(0)]).to("cuda") for one in model.data]
    loss_of = torch.compile(model.by_torch, dynamic=False)

    def step() -> None:
        update.zero_grad()
        loss_of(p, *data).backward()
        update.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(reps):
            step()
        torch.cuda.synchronize()
    spent: dict[str, list[float]] = {}
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            spent.setdefault(event.name, []).append(event.time_range.elapsed_us() / 1e3)
    bound = {key: ms for key, ms in spent.items() if not any(word in key for word in MULTIPLY)}
    total = {key: sum(map(sum, ones.values())) / reps for key, ones in (("step", spent), ("bound", bound))}
    print(
        f"{name}, torch: {total['step']:.3f} ms of kernels, of which {total['bound']:.3f} neither multiply nor attend"
    )
    for key, ms in sorted(bound.items(), key=lambda one: -sum(one[1]))[:12]:
        print(f"{len(ms) / reps:6.1f} x {median(ms):8.4f} ms  {key[:100]}")
    print(flush=True)
