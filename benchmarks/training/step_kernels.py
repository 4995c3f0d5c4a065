"""Kernels of a step that memory bounds: their bytes a second beside the device's own copy, and torch's seconds.

Trainers take a step each, on a queue whose events have time stamps. Copies of 1 GiB come between the steps. Bytes are
those of all values that a kernel takes and gives, each once. A view reads a part: where nothing is reduced, an input
counts no more numbers than the largest output has. Kernels that multiply matrices, or attend, are left out, with what
is computed in them. So are those that merge blocks of folds. Kernels below a thousandth of the step are not shown;
"all" has them.

torch compiles the same loss. Its kernels are those that its profiler names, without products and attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any
from unittest import mock

import flowcompute as fc
from benchmarks.training.loops import parameters
from benchmarks.training.models import Model
from flowcompute.gpu.device import Device
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.ir.kernel import Kernel

COPY_BYTES = 1 << 30
BOUND_BY_MEMORY = ("map", "rows", "gather", "columns", "transpose")
"""Words of forms that memory bounds."""

MULTIPLY = ("gemm", "cutlass", "nvjet", "xmma", "flash", "fmha", "cudnn", "sm90_", "sm80_", "Memcpy", "Memset")
"""Words of names of torch's kernels that multiply or attend, and of copies."""


@dataclass(frozen=True)
class Launched:
    """A launch of a step.

    Attributes:
        seconds: on the device.
        form: of the kernel; empty for those that merge folds, and multiply for them.
        size_bytes: that it needs.
        names: of the nodes whose values it stores.
    """

    seconds: float
    form: str = ""
    size_bytes: int = 0
    names: str = ""

    @property
    def is_bound_by_memory(self) -> bool:
        """Flag that no product and no attention is in it."""
        return any(one in self.form for one in BOUND_BY_MEMORY)


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

    Attributes:
        launched: once it is left.
        device: that was launched on last.
    """

    def __init__(self) -> None:
        self.launched: list[Launched] = []
        self.device: Any = None
        self._about: tuple[Any, ...] = ()
        self._timed: list[tuple[Callable[[], float], tuple[Any, ...]]] = []
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
            self._timed.append((seconds, self._about))
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
        self.launched = [Launched(seconds(), *about) for seconds, about in self._timed]


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
    copies_s = []
    for _ in range(reps + 1):
        p = parameters(model)
        with fc.train.Trainer([*p.values()], optimizer, device=device, **options) as trainer, Watch() as watch:
            trainer.step(model.by_flowcompute(p, *(fc.source(one[model.part(0)]) for one in model.data)))
        steps.append(watch.launched)
        copies_s.append(copy_s(watch.device, 3))
    return _print(name, [*zip(*steps[1:], strict=True)], 2 * COPY_BYTES / median(copies_s[1:]))


def _print(name: str, launches: Sequence[Sequence[Launched]], limit: float) -> float:
    """Print launches, each of which has a record for each repetition."""
    seconds = [median(one.seconds for one in each) for each in launches]
    step_s = sum(seconds)
    print(f"{name}: {len(launches)} launches of {1e3 * step_s:.3f} ms; a copy moves {limit / 1e9:.0f} GB/s")
    print(f"{'kernel':18}{'MiB':>9}{'ms':>9}{'GB/s':>8}{'of copy':>9}  stores")
    shown: dict[tuple[str, int, str], list[tuple[float, Launched]]] = {}
    for spent, (one, *_) in zip(seconds, launches, strict=True):
        if one.is_bound_by_memory:
            key = one.form, one.size_bytes, "".join(letter for letter in one.names if not letter.isdigit())
            shown.setdefault(key, []).append((spent, one))

    def row(what: str, size: float, spent: float, names: str = "") -> None:
        rate = size / spent
        left = f"{what:18}{size / 2**20:9.1f}{1e3 * spent:9.4f}{rate / 1e9:8.0f}{rate / limit:9.2f}"
        print(f"{left}  {names[:90]}", flush=True)

    for (form, size, _), ones in shown.items():
        spent = median(each for each, _ in ones)
        if spent * len(ones) > 1e-3 * step_s:
            row(f"{len(ones)} x {form}" if len(ones) > 1 else form, size, spent, ones[0][1].names)
    found = [one for ones in shown.values() for one in ones]
    total_s = sum(spent for spent, _ in found)
    row("all", sum(one.size_bytes for _, one in found), total_s)
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
