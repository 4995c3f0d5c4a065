"""Training step by step from Python, with a graph of its own for each step: `fc.train.Trainer`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np

from flowcompute.elements import Constant, Element, user_site
from flowcompute.elements.creation import Trainable
from flowcompute.elements.training import StepSchedule
from flowcompute.engine import CarriedValues, DrawnRecords, InnerJob, PlannedJob, close_all, handed_on_by_steps
from flowcompute.errors import DestinationError, SourceError, SpecError, short_repr
from flowcompute.files import find_drafts, may_be_draft_of, path_text, remove_draft, shown
from flowcompute.flow import resolve
from flowcompute.gpu.worker import Isolation
from flowcompute.graph import build_graph
from flowcompute.jobs import choose_backend, device_names
from flowcompute.model_files import weights
from flowcompute.runtime.options import RunOptions
from flowcompute.schedule import Shaping, plan_step
from flowcompute.sinks import save
from flowcompute.spec import INT64
from flowcompute.strategy import Config, PlanOptions, Strategy
from flowcompute.train.composing import Problem, Update
from flowcompute.train.fitting import checked_norm, checked_optimizer
from flowcompute.train.loss_pattern import LossPattern
from flowcompute.train.loss_scale import LossScale
from flowcompute.train.optimizers import Optimizer

MOST_PLANS = 16
"""Graphs of steps whose plans, kernels and memory are kept."""

_FILE = "trainer.safetensors"
_STEPS = "optimizer.steps"


class Trainer:
    """Parameters that are trained step by step. Each step may have a graph of its own; an equal one is found again.

    A step has the bits of the same step in `fit`. Parameters as elements stay what they are; `values` has what they
    have become.

    Args:
        parameters: made by `fc.parameter`, each with a name of its own.
        optimizer: such as `fc.train.adam()`.
        clip_norm: gradients that together are longer than this are scaled to it.
        loss_scale: what gradients are multiplied by while they are computed: a number or "dynamic", as for `fit`.
        options: memory, device, device_memory, strategy, precision, isolate and launch_timeout_s, as for `fc.plan`.

    Attributes:
        steps: that are done.

    Raises:
        SpecError, PlanError: if an argument makes no sense.
    """

    steps: int

    def __init__(
        self,
        parameters: Sequence[Element],
        optimizer: Optimizer,
        *,
        clip_norm: float | None = None,
        loss_scale: float | str | None = None,
        **options: Unpack[PlanOptions],
    ) -> None:
        self._parameters = _checked_parameters(parameters)
        self._names = tuple(str(one.inputs[0].name) for one in self._parameters)
        self._update = Update(
            checked_optimizer("Trainer", optimizer),
            checked_norm("Trainer", clip_norm),
            LossScale.of("Trainer", loss_scale),
        )
        self._options = RunOptions.parse("plan", options, PlanOptions)
        self._jobs: list[tuple[LossPattern, InnerJob]] = []
        self._values: CarriedValues | None = None
        self._is_open = True
        self.steps = 0
        self._compiled = 0

    # -- steps ------------------------------------------------------------------------------------

    def step(self, loss: Element) -> Any:
        """Update all parameters by the gradients of a loss, and return its value before that.

        Args:
            loss: a resident number, of parameters that are trained here and of streams of records.

        Raises:
            SpecError: if it cannot be trained.
            FlowError: as a run.
        """
        if not self._is_open:
            raise SpecError("cannot take a step: the trainer is closed", element="Trainer", site=user_site())
        job, sources, count = self._found(loss) or self._made(Problem.of("step", loss, self._parameters))
        records = DrawnRecords(sources, StepSchedule(count, count, 1, None), job.parts)
        try:
            value = self._carried().step(job, self.steps + 1, records.read)
            # At once: whatever comes now, an interrupt too, comes after this step.
            self.steps += 1
        finally:
            records.close()
        return value[()]

    def _found(self, loss: object) -> tuple[InnerJob, Sequence[Element], int] | None:
        """Return what runs the step of a loss, its sources and their records, where an equal one was run."""
        for known in reversed(self._jobs):
            pattern, job = known
            sources = pattern.sources(loss, self._parameters)
            if sources is not None:
                if known is not self._jobs[-1]:
                    self._jobs = [*(one for one in self._jobs if one is not known), known]
                return job, sources, pattern.records
        return None

    def _made(self, problem: Problem) -> tuple[InnerJob, Sequence[Element], int]:
        """Plan the step of a loss, and keep it in the place of the one that was taken longest ago."""
        planned = self._planned(problem.step(self._update, problem.records))
        job = InnerJob(planned, handed_on_by_steps(len(self._carried())))
        self._compiled += 1
        self._jobs.append((LossPattern(problem), job))
        while len(self._jobs) > MOST_PLANS:
            _, oldest = self._jobs.pop(0)
            self._carried().leave(oldest)
            oldest.close()
        return job, problem.sources, problem.records

    def _planned(self, roots: Sequence[Element]) -> PlannedJob:
        options, names = self._options, device_names(self._options.device)
        isolate, limit_s = Isolation(options.isolate, options.launch_timeout_s).checked(names)
        config = Config(
            options.memory_bytes,
            names,
            options.precision,
            isolate=isolate,
            launch_timeout_s=limit_s,
            device_memory_bytes=options.device_memory_bytes,
        )
        backend = choose_backend(names, build_graph(roots), isolate=isolate)
        shaping = Shaping(backend.capabilities.float64, fused=backend.capabilities.code_shape != "numpy")
        plan = plan_step(roots, config, options.strategy or Strategy(), backend.description, shaping)
        return PlannedJob.of(plan, backend)

    def _carried(self) -> CarriedValues:
        """Return all values, the parameters first."""
        if self._values is None:
            first: tuple[Any, ...] = self._update.begin(self._parameters)
            self._values = CarriedValues(
                [one.value if isinstance(one, Constant) else np.asarray(resolve(one, progress=False)) for one in first]
            )
        return self._values

    # -- what has become of it --------------------------------------------------------------------

    @property
    def values(self) -> Mapping[str, np.ndarray]:
        """The parameters after the last step, by name."""
        held = self._carried()
        return {name: _read_only(held.array(place)) for place, name in enumerate(self._names)}

    @property
    def skipped(self) -> int:
        """Steps that overflowed and updated nothing; see `loss_scale`."""
        scale, held = self._update.loss_scale, self._carried()
        return 0 if scale is None else int(held.array(len(held) - len(scale.begin())))

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write parameters, the optimizer's state and the number of steps into a folder, from which `load` goes on.

        The one file there, "trainer.safetensors", is replaced as a whole. It has the parameters by name. What processes
        that were killed meanwhile have left of it is removed.

        Args:
            folder: is made where it is not there.

        Returns:
            The path of the file.

        Raises:
            DestinationError, SpecError: if it cannot be written.
        """
        path = os.path.join(path_text(folder), _FILE)
        try:
            os.makedirs(path_text(folder), exist_ok=True)
        except OSError as error:
            raise DestinationError(
                f"cannot make {shown(path_text(folder))}: {error.strerror}", site=user_site()
            ) from error
        held = {name: Constant(value) for name, value in zip(self._kept_names(), self._carried().arrays(), strict=True)}
        held[_STEPS] = Constant(np.int64(self.steps))
        destination: Any = save(path)
        resolve(destination.bind(held), progress=False)
        _remove_drafts(path)
        return path

    def load(self, folder: str | os.PathLike[str]) -> None:
        """Go on where another trainer of the same parameters and optimizer was saved.

        Args:
            folder: as given to `save`.

        Raises:
            SourceError: if there is no file, or it is of other parameters or of another optimizer.
        """
        path = os.path.join(path_text(folder), _FILE)
        held, names = weights(path), self._kept_names()
        specs = [one.spec for one in self._update.begin(self._parameters)]
        wanted = {name: (spec.dtype, spec.shape) for name, spec in zip(names, specs, strict=True)}
        wanted[_STEPS] = (INT64, ())
        found = {name: (one.dtype, one.spec.shape) for name, one in held.items()}
        if found != wanted:
            others = sorted({*found.items()} ^ {*wanted.items()}, key=lambda one: one[0])[:4]
            raise SourceError(
                f"cannot go on from {shown(path)}: it is of other parameters, or of another optimizer",
                site=user_site(),
                expected=", ".join(names),
                got="other values of " + ", ".join(dict.fromkeys(name for name, _ in others)),
            )
        values = [np.array(resolve(held[name], progress=False)) for name in (*names, _STEPS)]
        steps = int(values.pop())
        if steps < 0:
            raise SourceError(f"cannot go on from {shown(path)}", site=user_site(), expected="steps", got=f"{steps}")
        self._carried().put(0, values)
        self.steps = steps

    def _kept_names(self) -> list[str]:
        """Return the names of all values in a file."""
        names = [*self._names, *(f"optimizer.{i}" for i in range(len(self._carried()) - len(self._names)))]
        if len({*names, _STEPS}) <= len(names):
            raise SpecError(
                "cannot save parameters under these names",
                element="Trainer",
                site=user_site(),
                expected='names that do not begin with "optimizer."',
                got=", ".join(self._names),
            )
        return names

    @property
    def compiled(self) -> int:
        """Different graphs that were planned and compiled."""
        return self._compiled

    def close(self) -> None:
        """Release kernels and memory; `values` stay. Harmless when called twice."""
        self._is_open = False
        jobs, self._jobs = self._jobs, []
        try:
            if self._values is not None:
                self._values.leave()
        finally:
            close_all([job for _, job in jobs])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Trainer {', '.join(self._names)}: {self.steps} steps>"


def _checked_parameters(parameters: object) -> tuple[Trainable, ...]:
    listed = list(parameters) if isinstance(parameters, list | tuple) else []
    if not listed or not all(isinstance(one, Trainable) for one in listed):
        raise SpecError(
            "cannot take parameters=",
            element="Trainer",
            site=user_site(),
            expected="a list of elements made by fc.parameter",
            got=short_repr(parameters),
        )
    names = [one.inputs[0].name for one in listed]
    if twice := sorted({str(name or "") for name in names if not name or names.count(name) > 1}):
        raise SpecError(
            "cannot take parameters=",
            element="Trainer",
            site=user_site(),
            expected="parameters with names of their own",
            got=repr(twice[0]),
            hint='fc.parameter(value, name="w")',
        )
    return tuple(listed)


def _remove_drafts(path: str) -> None:
    """Remove unfinished files that saving has left behind where it was killed; what cannot be removed stays."""
    target = os.path.abspath(path)
    with contextlib.suppress(OSError):
        for draft in find_drafts(os.path.dirname(target)):
            if may_be_draft_of(draft.path, target):
                remove_draft(draft)


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.setflags(write=False)
    return view
