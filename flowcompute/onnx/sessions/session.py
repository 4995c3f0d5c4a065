"""A model whose state grows from step to step: its keys and values, in buffers of fixed size on the device."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from flowcompute.checkpoint.store import CheckpointFolder, absolute_path
from flowcompute.elements import user_site
from flowcompute.errors import CheckpointError, FlowError, RunError, SpecError, short_repr
from flowcompute.flow import open_flow
from flowcompute.imports import dataclass
from flowcompute.onnx.graph_builder import Functions
from flowcompute.onnx.graphs import OnnxGraph, Port
from flowcompute.onnx.problems import UnsupportedError
from flowcompute.onnx.sessions.step_graph import LENGTH, StatePort, StepGraph, StepPort, compose_kept, compose_step
from flowcompute.runtime.flows import Flow, FlowOpener
from flowcompute.strategy import Strategy

MOST_CAPACITY = 1 << 24
"""Rows of a buffer."""

MOST_KINDS = 64
"""Kinds of steps, by the shapes that they are given, whose graphs are kept."""


def state_ports(
    graph: OnnxGraph, state: Mapping[str, str], batch: int, capacity: int, name: str
) -> tuple[StatePort, ...]:
    """Return the states of a session.

    Args:
        graph: of the model.
        state: by the name of an input that of the output which is the input of the next step.
        batch: size of the axis 0 of states.
        capacity: rows of a buffer.
        name: of the model, for errors.

    Raises:
        SpecError: if they are none of the model's, or have not one axis that grows.
    """
    inputs = {port.name: port for port in graph.inputs}
    outputs = {port.name: port for port in graph.outputs}
    unknown = [one for one in state if one not in inputs] + [one for one in state.values() if one not in outputs]
    if unknown or not state or len(set(state.values())) != len(state):
        raise _refused(
            name,
            "cannot keep this state",
            "names of inputs, each with an output of its own",
            f"{unknown[0]!r}" if unknown else short_repr(dict(state)),
            f"inputs are {', '.join(inputs)}; outputs are {', '.join(outputs)}",
        )
    for what, number, most in (("batch", batch, 1 << 31), ("capacity", capacity, MOST_CAPACITY)):
        if type(number) is not int or not 1 <= number <= most:
            raise _refused(name, f"cannot take {what}=", f"a whole number from 1 to {most}", short_repr(number))
    return tuple(_state_port(inputs[past], outputs[present], batch, capacity, name) for past, present in state.items())


def _state_port(past: Port, present: Port, batch: int, capacity: int, name: str) -> StatePort:
    shape = past.shape or ()
    free = [axis for axis, size in enumerate(shape) if axis and not isinstance(size, int)]
    if len(free) != 1 or past.dtype is None or (isinstance(shape[0], int) and shape[0] != batch):
        raise _refused(
            name,
            f"cannot keep {past.name!r} as a state",
            f"a shape with {batch} first, and one more axis that is not fixed, along which it grows",
            f"({', '.join('?' if size is None else str(size) for size in shape)})",
            "shapes= of fc.onnx.load says of which shapes the inputs are",
        )
    (axis,) = free
    sizes = [capacity if at == axis else size for at, size in enumerate(shape)]
    buffer = (batch, *(size for size in sizes[1:] if isinstance(size, int)))
    return StatePort(past.name, present.name, axis, buffer, past.dtype)


def _refused(name: str, text: str, expected: str, got: str, hint: str | None = None) -> SpecError:
    return SpecError(text, element=name, site=user_site(), expected=expected, got=got, hint=hint)


_ONE_STEP = Strategy(batch_bytes=1)
"""Room for a step at a time: each hangs on the one before."""


@dataclass(frozen=True)
class StepKind:
    """Key of steps whose graphs are equal.

    Attributes:
        ports: what a step is given.
        added: rows that it adds, where what is given says so.
    """

    ports: tuple[StepPort, ...]
    added: int | None


class Session:
    """Steps of a model that looks back: `with model.session(...) as steps: steps.step(input_ids=ids)["logits"]`.

    The states are the past keys and values. They stay where they are computed, in buffers of `capacity` rows. How many
    rows they hold is an argument of the kernels. So there are kernels for each shape of what a step is given, and none
    for a length. Made by `OnnxModel.session`.

    Attributes:
        length: how many rows the states hold.
        capacity: how many there is room for.
        programs: how many kernels have been made so far.
    """

    def __init__(
        self,
        graph: OnnxGraph,
        functions: Functions,
        states: tuple[StatePort, ...],
        name: str,
        options: Mapping[str, Any],
        checkpoint: str | os.PathLike[str] | None,
    ) -> None:
        self._graph, self._functions, self._states, self._name = graph, functions, states, name
        self._options = dict(options)
        self._checkpoint = None if checkpoint is None else absolute_path(checkpoint)
        self.capacity = states[0].shape[states[0].axis]
        self.length = 0
        self._kinds: dict[StepKind, tuple[StepGraph, FlowOpener]] = {}
        self._sources: set[str] = set()
        self._open: StepKind | None = None
        self._flow: Flow | None = None
        self._carried: dict[str, Any] = {}
        self._is_entered = False
        self._total = _total_names(graph, states)

    @property
    def programs(self) -> int:
        """Number of kernels that have been made so far."""
        return len(self._sources)

    # -- life -----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._is_entered = True
        if self._checkpoint is not None and CheckpointFolder.exists(self._checkpoint):
            self._thaw(self._checkpoint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_entered = False
        self._close(kind, error, trace)

    def _close(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        opened, self._open, self._flow = self._open, None, None
        if opened is not None:
            self._kinds[opened][1].__exit__(kind, error, trace)

    def freeze(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the states to a checkpoint; the session goes on. `checkpoint=` of `session` goes on from it.

        Args:
            path: of the checkpoint; by default that which the session was opened with.

        Returns:
            The path.

        Raises:
            CheckpointError: if it cannot be written, or no step has been taken.
        """
        target = self._checkpoint if path is None else absolute_path(path)
        if self._open is None or target is None:
            raise CheckpointError(
                "cannot freeze the session",
                element=self._name,
                expected="a path, and a step that has been taken",
                got="no path" if target is None else "no step",
                hint="steps.freeze(path) after steps.step(...)",
            )
        kind = self._open
        ports = [
            [one.name, list(one.shape), one.axis, None if one.known is None else list(one.known)] for one in kind.ports
        ]
        kept = {"length": self.length, "step": ports, "added": kind.added, "graph": self._kinds[kind][0].digest}
        with self._kept_flow(target) as flow:
            flow.carry_on(self._states_now())
            return flow.freeze(target, extra=kept)

    def _kept_flow(self, path: str) -> FlowOpener:
        """Return the flow that carries the states and does nothing else; a step of any kind goes on from it."""
        there = CheckpointFolder.exists(path)
        return open_flow(*compose_kept(self._states), device="numpy", checkpoint=path if there else None)

    def _thaw(self, path: str) -> None:
        """Take the states out of a checkpoint.

        Raises:
            CheckpointError: if it is none of a session of this model.
        """
        with CheckpointFolder.peek(path) as folder:
            kept = folder.look().body.get("extra")
        try:
            length, kind, digest = self._read(kept)
            is_same = self._kinds[self._add(kind)][0].digest == digest
        except (FlowError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                "cannot go on with a session",
                element=self._name,
                expected="what Session.freeze has written",
                got=short_repr(kept),
            ) from error
        if not is_same:
            raise CheckpointError(
                "cannot go on with a session of another model",
                element=self._name,
                hint="load the model that the session was frozen with",
            )
        with self._kept_flow(path) as flow:
            self._carried = flow.carried()
        self.length = length

    def _read(self, kept: Any) -> tuple[int, StepKind, str]:
        """Return what a checkpoint, which anybody may have written, says of a session."""
        length, added, digest = kept["length"], kept["added"], kept["graph"]
        _require(type(length) is int and 0 <= length <= self.capacity and isinstance(digest, str))
        _require(added is None or (type(added) is int and 0 <= added <= length))
        dtypes = {port.name: port.dtype for port in self._graph.inputs if port.dtype is not None}
        ports = []
        for name, shape, axis, known in kept["step"]:
            _require(all(type(size) is int and 0 <= size <= MOST_CAPACITY for size in shape))
            _require(axis is None or (type(axis) is int and 0 <= axis < len(shape)))
            numbers = None if known is None else tuple(bool(one) for one in known)
            ports.append(StepPort(str(name), dtypes[name], tuple(shape), axis, numbers))
        states = {one.past for one in self._states}
        _require([one.name for one in ports] == [one.name for one in self._graph.inputs if one.name not in states])
        return length, StepKind(tuple(ports), added), digest

    def _states_now(self) -> dict[str, Any]:
        """Return what is carried, by the names of the states."""
        return dict(self._carried) if self._flow is None else self._flow.carried()

    def reset(self) -> None:
        """Begin anew: the states hold no rows."""
        self.length = 0

    # -- steps ----------------------------------------------------------------------------------------

    def step(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Compute the model once, and keep the rows that it adds to the states.

        Args:
            inputs: arrays by the names of the inputs that are no states; `steps.step(**{"a.b": x})` for other names.
                One with an entry for each row of the states has `length` entries and those of the step.

        Returns:
            The outputs that are no states, by name.

        Raises:
            RunError: if the session is not open, inputs do not fit, or there is no room for the rows.
            UnsupportedError: if nodes cannot be computed in a session.
        """
        if not self._is_entered:
            raise RunError("the session is not open", element=self._name, hint="with model.session(...) as steps: ...")
        arrays = self._arrays(inputs)
        kind = self._composed(self._kind_of(arrays), arrays)
        made = self._kinds[kind][0]
        start = 0 if made.begins else self.length
        if start + made.added > self.capacity:
            raise RunError(
                "cannot keep more rows than there is room for",
                element=self._name,
                site=user_site(),
                expected=f"at most {self.capacity} rows, the capacity",
                got=f"{made.added} rows behind {start}",
                hint="open the session with a larger capacity=",
            )
        flow = self._switched(kind)
        sent = {one.name: self._padded(arrays[one.name], one.axis)[None] for one in kind.ports}
        sent[LENGTH] = np.array([start], np.int64)
        flow.send(**{name: array for name, array in sent.items() if name in made.feeds})
        results = flow.receive()
        results = results if isinstance(results, tuple) else (results,)
        self.length = start + made.added
        return {
            name: result[0] if axis is None else result[0][(*(slice(None),) * axis, slice(0, self.length))].copy()
            for (name, axis), result in zip(made.outputs, results, strict=False)
        }

    def _arrays(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        states = {one.past for one in self._states}
        ports = [port for port in self._graph.inputs if port.name not in states]
        if set(inputs) != {port.name for port in ports}:
            raise RunError(
                "cannot take a step with these inputs",
                element=self._name,
                site=user_site(),
                expected=", ".join(port.name for port in ports) or "none",
                got=", ".join(inputs) or "none",
            )
        return {port.name: self._array(port, inputs[port.name]) for port in ports}

    def _array(self, port: Port, given: Any) -> np.ndarray:
        """Return an input of a step as an array of its port's dtype and sizes."""
        try:
            array = np.asarray(given) if isinstance(given, np.ndarray | np.generic) else np.asarray(given, port.dtype)
        except (TypeError, ValueError) as error:
            raise RunError(
                f"cannot take this for input {port.name!r}", element=self._name, got=short_repr(given)
            ) from error
        declared = (None,) * array.ndim if port.shape is None else port.shape
        fits = len(declared) == array.ndim and all(
            not isinstance(want, int) or want == own for want, own in zip(declared, array.shape, strict=False)
        )
        if port.dtype is None or array.dtype != port.dtype or not fits:
            name = "an array" if port.dtype is None else port.dtype.name
            raise RunError(
                f"cannot take this for input {port.name!r}",
                element=self._name,
                site=user_site(),
                expected=f"{name}({', '.join('?' if one is None else str(one) for one in declared)})",
                got=f"{array.dtype.name}{array.shape}",
            )
        return array

    def _kind_of(self, arrays: Mapping[str, np.ndarray]) -> StepKind:
        """Return of which kind a step is."""
        ports, added = [], set()
        for port in self._graph.inputs:
            array = arrays.get(port.name)
            if array is None:
                continue
            axis = next((at for at, size in enumerate(port.shape or ()) if size in self._total), None)
            known = tuple(array.reshape(-1).tolist()) if array.dtype == np.bool_ and array.size == 1 else None
            shape = array.shape
            if axis is not None:
                added.add(shape[axis] - self.length)
                shape = (*shape[:axis], self.capacity, *shape[axis + 1 :])
            ports.append(StepPort(port.name, array.dtype, shape, axis, known))
        if len(added) > 1 or min(added, default=1) < 1:
            raise RunError(
                "cannot tell how many rows the step adds",
                element=self._name,
                site=user_site(),
                expected=f"{self.length} entries for the rows that there are, and those of the step",
                got=", ".join(f"{one + self.length} entries" for one in sorted(added)),
            )
        return StepKind(tuple(ports), added.pop() if added else None)

    def _padded(self, array: np.ndarray, axis: int | None) -> np.ndarray:
        if axis is None:
            return array
        most = self.capacity - array.shape[axis]
        return np.pad(array, [(0, most if at == axis else 0) for at in range(array.ndim)]) if most >= 0 else array

    def _composed(self, kind: StepKind, arrays: Mapping[str, np.ndarray]) -> StepKind:
        """Compose what a step computes, once for each kind, and return the kind."""
        if kind in self._kinds:
            return kind
        # A step that begins may look at its own rows alone.
        ports = (replace(one, axis=None, shape=arrays[one.name].shape) for one in kind.ports)
        other = StepKind(tuple(ports), None)
        if other in self._kinds and self.length == 0:
            return other
        try:
            return self._add(kind)
        except UnsupportedError:
            if self.length or other == kind:
                raise
            with contextlib.suppress(UnsupportedError):
                return self._add(other)
            raise

    def _add(self, kind: StepKind) -> StepKind:
        given = {one.name: one for one in kind.ports}
        graph = compose_step(self._graph, self._functions, self._states, given, kind.added, self._name)
        opener = open_flow(*graph.roots, **{"strategy": _ONE_STEP} | self._options)
        if len(self._kinds) >= MOST_KINDS:
            self._kinds = {one: made for one, made in self._kinds.items() if one == self._open}
        self._sources |= {one.source for one in opener.plan.kernels}
        self._kinds[kind] = graph, opener
        return kind

    def _switched(self, kind: StepKind) -> Flow:
        """Return the flow of a kind of steps. What the one before has carried goes on in it."""
        if kind == self._open and self._flow is not None:
            return self._flow
        self._carried = self._states_now()
        self._close()
        self._flow, self._open = self._kinds[kind][1].__enter__(), kind
        if self._carried:
            self._flow.carry_on(self._carried)
        return self._flow


def _require(sound: bool) -> None:
    """Raise ValueError unless what a checkpoint says of a session is sound."""
    if not sound:
        raise ValueError


def _total_names(graph: OnnxGraph, states: Sequence[StatePort]) -> set[str]:
    """Return the names of sizes that count the rows of states after a step."""
    presents = {one.present: one for one in states}
    pasts = {one.past: one for one in states}
    outputs = [(port.shape, presents[port.name].axis) for port in graph.outputs if port.name in presents]
    names = {shape[axis] for shape, axis in outputs if shape is not None and len(shape) > axis}
    before = {port.shape[pasts[port.name].axis] for port in graph.inputs if port.name in pasts and port.shape}
    return {one for one in names - before if isinstance(one, str)}
