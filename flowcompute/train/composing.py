"""The graph of a step of training: a loss of the records of one step, its gradients, and the update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeGuard

from flowcompute.checkpoint.job import made_again
from flowcompute.elements import ALONG, Compute, Constant, Element, Source, cast, user_site
from flowcompute.elements.creation import Trainable
from flowcompute.elements.generated import Generator
from flowcompute.elements.math import sqrt, where
from flowcompute.elements.training import STEP, Given, GivenStream
from flowcompute.errors import SpecError
from flowcompute.gradients import grad, times_gradient
from flowcompute.graph import postorder
from flowcompute.imports import dataclass
from flowcompute.rewrite import source_of
from flowcompute.spec import FLOAT32, INT64, Spec, Stream
from flowcompute.train.loss_scale import LossScale, all_finite, unscaled
from flowcompute.train.optimizers import Optimizer


@dataclass(frozen=True)
class Problem:
    """A loss, and what it is computed of.

    Attributes:
        op: the function that the user called, for errors.
        loss: as composed.
        order: all elements that it depends on, operands first, up to parameters.
        parameters: in the order in which they are met.
        names: of these.
        sources: what records come from, of which `source_of` makes sources.
        streams: places of sources by the `id` of their elements.
        records: of each source.
    """

    op: str
    loss: Any
    order: tuple[Element, ...]
    parameters: tuple[Trainable, ...]
    names: tuple[str, ...]
    sources: tuple[Element, ...]
    streams: dict[int, int]
    records: int

    @classmethod
    def of(cls, op: str, loss: Any, wanted: Sequence[Trainable] | None = None) -> Problem:
        """Look at a loss.

        Args:
            op: the function that the user called.
            loss: a resident number.
            wanted: the parameters that are trained; all by default.

        Raises:
            SpecError: if it cannot be trained.
        """
        if not isinstance(loss, Element) or loss.spec.is_stream or loss.ndim:
            got = str(loss.spec) if isinstance(loss, Element) else type(loss).__name__
            raise _refused(op, "a loss that is one resident number", got, hint="sum it, or take its mean")
        order, leaves = ordered(loss)
        found = [one for one in order if is_parameter(one)]
        streams: dict[int, int] = {}
        sources: list[Element] = []
        for one in order:
            if id(one) in leaves:
                streams[id(one)] = len(sources)
                sources.append(one)
            else:
                check_leaf(op, one)
        if not found or not sources:
            missing = "without records: an array is resident before fc.source(array) makes records of it"
            got = f"{loss.spec} {missing if found else 'without parameters'}"
            hint = None if found else 'w = fc.parameter(array, name="w") stands for an array that is trained'
            raise _refused(op, "a loss of fc.parameter and of records of files or arrays", got, hint=hint)
        parameters = tuple(found) if wanted is None else tuple(wanted)
        for one in found:
            if all(one is not other for other in parameters):
                raise _refused(op, "a loss of the parameters that are trained", f"another one, {_name(one)!r}", one)
        known = {source.spec.length for source in sources}
        empty = next((one for one in sources if one.spec.length == 0), None)
        if empty is not None:
            hint = "see whether what it reads is the file or the array that you mean"
            raise _refused(op, "a stream with at least one record", f"{empty.spec}", empty, hint=hint)
        if len(known) != 1 or None in known:
            lengths = ", ".join(f"{one.name or one.label} of {one.spec.length}" for one in sources)
            raise _refused(op, "streams of one known length", lengths)
        names = tuple(_name(one) for one in parameters)
        if twice := sorted({name for name in names if names.count(name) > 1 or not name}):
            hint = 'fc.parameter(value, name="w")'
            raise _refused(op, "parameters with names of their own", repr(twice[0]), hint=hint)
        return cls(op, loss, order, parameters, names, tuple(sources), streams, known.pop() or 0)

    def step(self, update: Update, records: int) -> tuple[Element, ...]:
        """Return the roots of a step: the loss of its records, the parameters and all state after it.

        Args:
            update: what becomes of the gradients.
            records: in the step.

        Raises:
            SpecError: if there is no gradient, or the loss cannot be computed of so many records.
        """
        places = {id(one): place for place, one in enumerate(self.parameters)}
        values = list(self.stands_in().values())
        loss = _Remaking(self, places, values, records).made()
        return (loss, *update.after(loss, values))

    def stands_in(self) -> dict[int, Given]:
        """Return values that are given in the place of parameters, by the `id` of these."""
        held = zip(self.parameters, self.names, strict=True)
        return {id(one): Given(f"value.{i}", one.spec, name=name) for i, (one, name) in enumerate(held)}


@dataclass(frozen=True)
class Update:
    """From a loss to the parameters after a step.

    Attributes:
        optimizer: makes the update of a parameter.
        clip_norm: the longest gradient, all parameters together; longer ones are scaled. None for any.
        loss_scale: of the loss; None for none.
    """

    optimizer: Optimizer
    clip_norm: float | None
    loss_scale: LossScale | None

    def begin(self, parameters: Sequence[Trainable]) -> tuple[Element, ...]:
        """Return what all values begin with: the parameters, the optimizer's state of each, and that of the scale."""
        held = [one.inputs[0] for one in parameters]
        states = [state for one in held for state in self.optimizer.begin(one)]
        return (*held, *states, *(() if self.loss_scale is None else self.loss_scale.begin()))

    def after(self, loss: Element, values: Sequence[Given]) -> list[Element]:
        """Return all values after a step, in the order of `begin`.

        Args:
            loss: of the step.
            values: the parameters before it, which the loss depends on.
        """
        begun = [self.optimizer.begin(one) for one in values]
        place = len(values) + sum(map(len, begun))
        scaling: list[Element] = []
        number: Any = Given(STEP, Spec(INT64, ()))
        sound: Any = None
        if self.loss_scale is None:
            gradients = grad(loss, values)
        else:
            scaling = [Given(f"value.{place + i}", one.spec) for i, one in enumerate(self.loss_scale.begin())]
            scale = self.loss_scale.scale(scaling)
            gradients = times_gradient(loss, values, scale)
            sound = all_finite(gradients)
            gradients = unscaled(gradients, scale)
            # A step that was skipped is no update.
            number = number - scaling[0]
        if self.clip_norm is not None:
            gradients = _clipped(gradients, self.clip_norm)
        parameters: list[Element] = []
        states: list[Element] = []
        place = len(values)
        for value, gradient, first in zip(values, gradients, begun, strict=True):
            state = [Given(f"value.{place + i}", each.spec) for i, each in enumerate(first)]
            place += len(state)
            after, remembered = self.optimizer.advance(gradient, state, value, number)
            parameters.append(_kept(sound, after, value))
            states += [_kept(sound, one, before) for one, before in zip(remembered, state, strict=True)]
        more = () if self.loss_scale is None else self.loss_scale.after(sound, scaling)
        return [*parameters, *states, *more]


def _kept(sound: Any, after: Element, before: Element) -> Element:
    """Return a value after a step; as it was before where the step is not sound."""
    return after if sound is None else where(sound, after, before)


@dataclass
class _Remaking:
    """A loss made again of other leaves."""

    problem: Problem
    places: dict[int, int]
    values: Sequence[Given]
    records: int
    seeds: dict[int, Given] = field(default_factory=dict)

    def made(self) -> Element:
        new: dict[int, Element] = {}
        for element in self.problem.order:
            new[id(element)] = self._new(element, [new[id(one)] for one in element.inputs if id(one) in new])
        return new[id(self.problem.loss)]

    def _new(self, element: Element, inputs: list[Element]) -> Element:
        if id(element) in self.places:
            return self.values[self.places[id(element)]]
        place = self.problem.streams.get(id(element))
        if place is not None:
            return GivenStream.of(place, self.problem.sources[place], self.records)
        if not isinstance(element, Compute):
            return element
        if isinstance(element.op, Generator):
            inputs = self._seeded(element)
        elif all(one is other for one, other in zip(inputs, element.inputs, strict=True)):
            return element
        return made_again(element, inputs, self._spec(element))

    def _seeded(self, element: Compute) -> list[Element]:
        """Return the operands of random numbers, whose key is another one in each step."""
        assert isinstance(element.op, Generator)
        if element.spec.length != self.problem.records:
            raise _refused(
                self.problem.op, f"numbers for {self.problem.records} records", f"{element.spec.length}", element
            )
        if not element.op.bits:
            return list(element.inputs)
        key, *more = element.inputs
        assert isinstance(key, Constant)
        seed = int(key.value)
        return [self.seeds.setdefault(seed, Given.seeded(seed)), *more]

    def _spec(self, element: Element) -> Spec:
        spec = element.spec
        if spec.length != self.problem.records:
            return spec
        return Spec(spec.dtype, spec.shape, Stream(self.records))


def _clipped(gradients: Sequence[Any], most: float) -> list[Any]:
    """Scale gradients that together are longer than that."""
    squares: Any = None
    for one in gradients:
        wide = cast(one, FLOAT32) if one.dtype.itemsize < FLOAT32.itemsize else one
        square = (wide * wide).sum()
        squares = square if squares is None else squares + square
    length = sqrt(squares)
    # NaN stays NaN: a gradient that is none is not hidden.
    scale = where(length > most, most / length, 1.0)
    return [cast(one * cast(scale, one.dtype), one.dtype) for one in gradients]


def with_others(element: Element, new: dict[int, Element]) -> Element:
    """Return an element made again of other elements.

    Args:
        element: what is made again.
        new: what stands in the place of elements, by their `id`; what is made again is added.
    """
    for one in ordered(element)[0]:
        if id(one) in new:
            continue
        inputs = [new.get(id(operand), operand) for operand in one.inputs]
        same = all(operand is other for operand, other in zip(inputs, one.inputs, strict=True))
        new[id(one)] = one if same or not isinstance(one, Compute) else made_again(one, inputs, one.spec)
    return new[id(element)]


def ordered(loss: Element) -> tuple[tuple[Element, ...], set[int]]:
    """Return all elements that a loss depends on, operands first, and the `id` of those that records come from.

    Neither parameters nor what records come from have operands here.
    """
    by_id: dict[int, Element] = {id(loss): loss}
    sources: set[int] = set()

    def operands(key: int) -> list[int]:
        element = by_id[key]
        if is_parameter(element):
            return []
        if source_of(element) is not None:
            sources.add(key)
            return []
        for one in element.inputs:
            by_id[id(one)] = one
        return [id(one) for one in element.inputs]

    return tuple([by_id[key] for key in postorder([id(loss)], operands)]), sources


def is_parameter(element: object) -> TypeGuard[Trainable]:
    """Check whether an element was made by `fc.parameter`."""
    return isinstance(element, Trainable)


def _name(parameter: Element) -> str:
    return parameter.name or parameter.inputs[0].name or ""


def check_leaf(op: str, element: Element) -> None:
    """Refuse a stream that is no leaf and has no operands that are.

    Raises:
        SpecError: if it can be read once only, or is made of a value that has no rows for records.
    """
    if isinstance(element, Source):
        hint = "save it to a file first"
        raise _refused(op, "records that can be read again and from any place", element.label, element, hint=hint)
    if isinstance(element, Compute) and element.op is ALONG:
        raise _refused(op, "a resident value that has a row for each record", str(element.spec), element)


def _refused(op: str, expected: str, got: str, at: Element | None = None, *, hint: str | None = None) -> SpecError:
    where = user_site() if at is None or at.site is None else at.site
    name = op if at is None else at.name or at.label
    return SpecError("cannot train this", element=name, site=where, expected=expected, got=got, hint=hint)
