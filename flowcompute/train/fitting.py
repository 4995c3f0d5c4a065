"""Training as one static job: `fc.train.fit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from flowcompute.elements import Compute, Constant, Destination, Element, public, user_site
from flowcompute.elements.arguments import meant, real, whole
from flowcompute.elements.random import SEED_BITS
from flowcompute.elements.training import (
    EVALUATED,
    LOSS,
    MEASURES,
    MOST_EPOCHS,
    TAKEN,
    StepSchedule,
    Training,
    trained,
)
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import INT64, is_float
from flowcompute.train.composing import Problem, Update, ordered, with_others
from flowcompute.train.evaluating import Measures, Stop, evaluation_of
from flowcompute.train.loss_scale import LossScale
from flowcompute.train.optimizers import Optimizer

AUTO_BATCH = 64
"""Records in a step where the user says nothing."""


class Trained(Mapping[str, Any]):
    """A training that nothing has run yet, and what it will give: a mapping of parameters by name. Made by `fit`.

    `trained >> fc.save("w.safetensors")` writes all parameters.

    Attributes:
        losses: the loss of each step, before its update, as a stream. Its length is not known where a criterion may
            end the training.
        measures: by name a stream with what each evaluation has measured.
        skipped: the number of steps that overflowed and updated nothing, as a resident int64.
        names: of the parameters.
    """

    losses: Element
    measures: Mapping[str, Any]
    skipped: Element
    names: tuple[str, ...]

    def __init__(self, training: Training, problem: Problem, update: Update) -> None:
        self.losses, self.measures = _told(training)
        self.names = training.names
        self.skipped = Constant(0, INT64)
        if update.loss_scale is not None:
            self.skipped = trained(training, training.updated - len(update.loss_scale.begin()))
        self._training = training
        self._problem = problem

    def __getitem__(self, name: object) -> Compute:
        """Return a parameter at the end of the training.

        Args:
            name: of the parameter, or the parameter itself.

        Raises:
            SpecError: if it is none that is trained.
        """
        for place, (known, one) in enumerate(zip(self.names, self._problem.parameters, strict=True)):
            if known == name if isinstance(name, str) else id(one) == id(name):
                return trained(self._training, place)
        raise SpecError(
            "cannot take a parameter that is not trained",
            element="fit",
            site=user_site(),
            expected=", ".join(self.names),
            got=short_repr(name),
        )

    def apply(self, element: Element) -> Any:
        """Return an element with what its parameters are at the end of the training in their place.

        Args:
            element: what is computed of parameters that are trained here, such as a measure over other records. It is
                computed once the training has ended, in the same job.

        Raises:
            SpecError: if it depends on none of them.
        """
        if not isinstance(element, Element) or isinstance(element, Destination):
            raise SpecError(
                "cannot apply what is trained to this",
                element="apply",
                site=user_site(),
                expected="an element that is no destination",
                got=short_repr(element),
            )
        new: dict[int, Element] = {
            id(one): trained(self._training, place) for place, one in enumerate(self._problem.parameters)
        }
        if not any(id(one) in new for one in ordered(element)[0]):
            raise SpecError(
                "cannot apply what is trained to an element that has none of its parameters",
                element=element.name or element.base_name,
                site=user_site(),
                expected=f"one of {', '.join(self.names)}",
                got=str(element.spec),
            )
        return with_others(element, new)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    # Elements are equal to nothing: `==` of two parameters is one more element.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Trained {', '.join(self.names)}: {self._training.schedule.steps} steps>"


def _told(training: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return what a training tells of its steps: the losses, and by name what was measured."""
    evaluation = training.evaluation
    if evaluation is None:
        return training, {}
    losses, evaluated = training[:, LOSS], training[:, EVALUATED] != 0
    if evaluation.stops:
        losses = losses[training[:, TAKEN] != 0]
    measures = {
        name: training[:, MEASURES + i][evaluated].astype(one.dtype if is_float(one.dtype) else training.dtype)
        for i, (name, one) in enumerate(zip(evaluation.names, evaluation.roots, strict=False))
    }
    return losses.astype(training.steps[0][0].dtype), measures


@public
@meant(batch_size="batch", num_epochs="epochs", seed="shuffle")
def fit(
    loss: Element,
    optimizer: Optimizer,
    *,
    batch: int | Literal["auto"] | None = "auto",
    epochs: int = 1,
    shuffle: int | None = None,
    clip_norm: float | None = None,
    loss_scale: float | str | None = None,
    evaluate: Measures | None = None,
    every: int | None = None,
    stop: Stop | None = None,
) -> Trained:
    """Train the parameters that a loss depends on, as one job that streams, freezes and resumes.

    Nothing runs before a verb asks for what is trained. Each step takes the next records, as if they were the whole
    stream: their loss, its gradients, and the update. Parameters and the state of the optimizer go from step to step.

    Args:
        loss: a resident number, of `fc.parameter` and of records of files or arrays, all equally long.
        optimizer: such as `fc.train.adam()`.
        batch: records in a step, at most as many as there are; the last one of an epoch may have fewer. None for all,
            "auto" for 64, or all where there are fewer.
        epochs: how often all records are read.
        shuffle: the seed of another order of the records in each epoch, that of `fc.shuffle`. None for their own.
        clip_norm: gradients that together are longer than this are scaled to it.
        loss_scale: what gradients are multiplied by while they are computed: a number, or "dynamic" for one that is
            doubled after 2000 steps without an overflow, and halved after one. A step that overflows updates nothing,
            and is counted as `skipped`. For losses that compute in half formats.
        evaluate: what is measured between steps, with the parameters as they are then: a resident number, or several
            by name, each over all of its records. `measures` of the result has what was measured.
        every: steps from one evaluation to the next; those of an epoch by default.
        stop: what ends the training early: `fc.train.patience`, or a function from the measures by name to whether to
            stop. It is composed once, of elements, and is part of the job.

    Raises:
        SpecError: if an argument makes no sense, or the loss cannot be trained.
    """
    problem = Problem.of("fit", loss)
    optimizer = checked_optimizer("fit", optimizer)
    size = _records_in_step(batch, problem)
    most = (1 << SEED_BITS) - 1
    seed = (
        None if shuffle is None else whole("fit", "shuffle", shuffle, 0, most, f"a seed from 0 to 2**{SEED_BITS} - 1")
    )
    schedule = StepSchedule(problem.records, size, whole("fit", "epochs", epochs, 1, MOST_EPOCHS), seed)
    update = Update(optimizer, checked_norm("fit", clip_norm), LossScale.of("fit", loss_scale))
    steps = [problem.step(update, records) for records in schedule.sizes]
    evaluation, state = evaluation_of(problem, schedule, len(steps[0]) - 1, evaluate, every, stop)
    initial = (*update.begin(problem.parameters), *state)
    training = Training(initial, problem.sources, schedule, steps, problem.names, evaluation)
    # What the call returns is no element, but this is what it stands for.
    training.freeze_fields(is_step=False)
    return Trained(training, problem, update)


def _records_in_step(batch: object, problem: Problem) -> int:
    """Return how many records a step has.

    Raises:
        SpecError: if there are not so many, or it is no number of them.
    """
    if batch is None:
        return problem.records
    if isinstance(batch, str) and batch == "auto":
        return min(AUTO_BATCH, problem.records)
    size = whole("fit", "batch", batch, 1)
    if size > problem.records:
        named = problem.sources[0]
        raise SpecError(
            "cannot take batch=: a step would have more records than there are",
            element=named.name or named.label,
            site=user_site(),
            expected=f"at most {problem.records}, the records of each stream",
            got=str(size),
            hint="batch=None takes all of them in one step",
        )
    return size


def checked_optimizer(op: str, optimizer: object) -> Optimizer:
    """Return the optimizer.

    Raises:
        SpecError: if it is none.
    """
    if not isinstance(optimizer, Optimizer):
        raise SpecError(
            "cannot take optimizer=",
            element=op,
            site=user_site(),
            expected="an optimizer, such as fc.train.adam()",
            got=short_repr(optimizer),
        )
    return optimizer


def checked_norm(op: str, clip_norm: object) -> float | None:
    """Return the longest gradient.

    Raises:
        SpecError: if it is no number above 0.
    """
    number = None if clip_norm is None else real(op, "clip_norm", clip_norm)
    if number is not None and not number > 0:
        raise SpecError(
            "cannot take clip_norm=", element=op, site=user_site(), expected="a number above 0", got=f"{number}"
        )
    return number
