"""Training as an element: a stream of losses, one a step, and what parameters are at its end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from flowcompute.elements.compute import Compute
from flowcompute.elements.element import Element
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.errors import SpecError
from flowcompute.imports import dataclass
from flowcompute.spec import FLOAT32, FLOAT64, Spec, Stream, is_float


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("training says its dtypes itself")


TRAIN = Op("train", -1, Kind.SCAN, np.asarray, _declared, cost=1000, doc="The loss of each step of a training.")


def _rebuild_trained(kept: KeptOp) -> Compute:
    training = kept.one()
    kept.require(isinstance(training, Training), "a training")
    place = kept.attrs.whole("place", most=len(training.initial) - 1)
    return trained(training, place)


TRAINED = Op(
    "trained", 1, Kind.FOLD, np.asarray, _declared, cost=100, doc="A value at the end of a training.",
    rebuild=_rebuild_trained,
)  # fmt: skip


MOST_MEASURES = 64
"""Measures of an evaluation."""

MOST_EPOCHS = 1 << 32
"""Epochs of a training, each with an order of its own."""


@dataclass(frozen=True)
class StepSchedule:
    """Division of the records into steps.

    Attributes:
        records: of each source.
        batch: records in a step; the last one of an epoch may have fewer.
        epochs: how often all records are read.
        seed: of the order of records; None where they come as they are.
    """

    records: int
    batch: int
    epochs: int
    seed: int | None

    @cached_property
    def steps_an_epoch(self) -> int:
        """Steps in which all records are read once."""
        return -(-self.records // self.batch)

    @property
    def steps(self) -> int:
        """All steps."""
        return self.steps_an_epoch * self.epochs

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of steps, each once: of whole ones, and of a shorter last one."""
        first, last = min(self.batch, self.records), self.records % self.batch
        return (first, last) if last and last != first else (first,)

    def of_step(self, step: int) -> tuple[int, int, int]:
        """Return the epoch of a step, counted from 0, and its records within that: from and to."""
        epoch, place = divmod(step, self.steps_an_epoch)
        start = place * self.batch
        return epoch, start, min(start + self.batch, self.records)


@dataclass(frozen=True)
class Evaluation:
    """Measures that are taken between steps, and a criterion that may end the training by them.

    Attributes:
        roots: of its graph: the measures; then, where there is a criterion, whether to stop, and its state after that.
            Its leaves are `Given` values, and `GivenStream` of all records of its sources.
        names: of the measures.
        every: steps from one evaluation to the next.
        sources: streams that its records are read from.
    """

    roots: tuple[Element, ...]
    names: tuple[str, ...]
    every: int
    sources: tuple[Element, ...]

    @property
    def stops(self) -> bool:
        """True where a criterion may end the training."""
        return len(self.roots) > len(self.names)

    @property
    def state(self) -> tuple[Spec, ...]:
        """Specs of what the criterion remembers; these are the last of the values that the training carries on."""
        return tuple(one.spec for one in self.roots[len(self.names) + 1 :])


LOSS, TAKEN, EVALUATED, MEASURES = range(4)
"""Places in a record of a training that is evaluated: the loss, two flags of 0 and 1, and the first of the measures."""


class Training(Compute):
    """A stream of losses. Its state is all values that steps carry on: parameters, and what updates remember.

    Its operands are what these begin with, then its sources. It reads those itself, step by step: they are no streams
    of the pass that it belongs to.

    Where it is evaluated, a record has more numbers than the loss: see `LOSS`. It may then end before its last record.

    Attributes:
        sources: streams that records are read from, each as long as the others.
        schedule: which records are in which step.
        steps: for each size of a step the roots of its graph: the loss, then all values after it. Its leaves are
            `Given` and `GivenStream`.
        names: of the parameters, which are the first values.
        evaluation: what is measured between steps; None for nothing.
    """

    sources: tuple[Element, ...]
    schedule: StepSchedule
    steps: tuple[tuple[Element, ...], ...]
    names: tuple[str, ...]
    evaluation: Evaluation | None

    def __init__(
        self,
        initial: Sequence[Element],
        sources: Sequence[Element],
        schedule: StepSchedule,
        steps: Sequence[Sequence[Element]],
        names: Sequence[str],
        evaluation: Evaluation | None = None,
    ) -> None:
        loss, read = steps[0][0], tuple(sources)
        shape: tuple[int, ...] = ()
        dtype = loss.dtype
        if evaluation is not None:
            read += evaluation.sources
            shape = (MEASURES + len(evaluation.names),)
            dtype = _told_in([dtype, *(one.dtype for one in evaluation.roots[: len(evaluation.names)])])
        super().__init__(TRAIN, (*initial, *read), Spec(dtype, shape, Stream(schedule.steps)))
        self.freeze_fields(
            sources=tuple(sources),
            schedule=schedule,
            steps=tuple(map(tuple, steps)),
            names=tuple(names),
            evaluation=evaluation,
        )

    @property
    def initial(self) -> tuple[Element, ...]:
        """Values that everything begins with."""
        more = () if self.evaluation is None else self.evaluation.sources
        return self.inputs[: len(self.inputs) - len(self.sources) - len(more)]

    @property
    def updated(self) -> int:
        """The number of values that a step updates; those behind them are the state of a criterion."""
        return len(self.steps[0]) - 1

    @property
    def label(self) -> str:
        """The name of the function that makes it."""
        return "fit"


def _told_in(dtypes: Sequence[np.dtype]) -> np.dtype:
    """Return the dtype that holds numbers of several: float32 where all are floats of at most so many bits."""
    return FLOAT32 if all(is_float(one) and one.itemsize <= FLOAT32.itemsize for one in dtypes) else FLOAT64


def trained(training: Training, place: int) -> Compute:
    """Return one of the values at the end of a training.

    Args:
        training: which one.
        place: of the value.

    Raises:
        SpecError: if there is no such value.
    """
    if not 0 <= place < len(training.initial):
        raise SpecError("cannot take a value that is not trained", element="fit", expected="one of its values")
    spec = training.initial[place].spec
    return Compute(TRAINED, (training,), Spec(spec.dtype, spec.shape), {"place": place})
