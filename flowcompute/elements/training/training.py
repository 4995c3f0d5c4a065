"""Training as an element: a stream of losses, one a step, and what parameters are at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flowcompute.elements.compute import Compute
from flowcompute.elements.element import Element
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.errors import SpecError
from flowcompute.spec import Spec, Stream


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

    @property
    def steps_an_epoch(self) -> int:
        """Steps in which all records are read once."""
        return -(-self.records // self.batch)

    @property
    def steps(self) -> int:
        """All steps."""
        return self.steps_an_epoch * self.epochs

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of steps, each once: of whole ones, and of a shorter last one."""
        first, last = min(self.batch, self.records), self.records % self.batch
        return (first, last) if last and last != first else (first,)

    def of_step(self, step: int) -> tuple[int, int, int]:
        """Return the epoch of a step, counted from 0, and its records within that: from and to."""
        epoch, place = divmod(step, self.steps_an_epoch)
        start = place * self.batch
        return epoch, start, min(start + self.batch, self.records)


class Training(Compute):
    """A stream of losses. Its state is all values that steps carry on: parameters, and what updates remember.

    Its operands are what these begin with, then its sources. It reads those itself, step by step: they are no streams
    of the pass that it belongs to.

    Attributes:
        sources: streams that records are read from, each as long as the others.
        schedule: which records are in which step.
        steps: for each size of a step the roots of its graph: the loss, then all values after it. Its leaves are
            `Given` and `GivenStream`.
        names: of the parameters, which are the first values.
    """

    sources: tuple[Element, ...]
    schedule: StepSchedule
    steps: tuple[tuple[Element, ...], ...]
    names: tuple[str, ...]

    def __init__(
        self,
        initial: Sequence[Element],
        sources: Sequence[Element],
        schedule: StepSchedule,
        steps: Sequence[Sequence[Element]],
        names: Sequence[str],
    ) -> None:
        loss = steps[0][0]
        super().__init__(TRAIN, (*initial, *sources), Spec(loss.dtype, (), Stream(schedule.steps)))
        self.freeze_fields(
            sources=tuple(sources), schedule=schedule, steps=tuple(map(tuple, steps)), names=tuple(names)
        )

    @property
    def initial(self) -> tuple[Element, ...]:
        """Values that everything begins with."""
        return self.inputs[: len(self.inputs) - len(self.sources)]

    @property
    def label(self) -> str:
        """The name of the function that makes it."""
        return "fit"


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
