"""Runs of a pass that follow each other and are launched as one, each over the results of the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from flowcompute.engine.backend import NoRoomTogetherError
from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import KnownRuns, RegionRunner
from flowcompute.errors import DeviceFullError
from flowcompute.graph import Node


class RunsTogether:
    """Runs whose arguments are noted, and that are launched once there is no room for another, or somebody waits.

    What the next run takes goes to two sets of arrays that stay, alternately, and to new arrays in the last run. All
    runs of a launch name the new ones as their results, by which the next run is known to take them. Other results, as
    a loss, have arrays of each run.

    Args:
        state: of the pass.
        runner: the only one.
        launch: notes the arguments of runs, and launches them.
        most: runs that there is room for.
        made: whole values that pass, and that the next run takes.
        own: others that pass.
        carried: given values that are results of the run before.
        folds: of records, which the host makes once the runs have ended.
        see: what makes views and arrays of a run before the launch.
        room: gives the array of a whole value.
        fold: makes a fold of each of several slices.
    """

    def __init__(
        self,
        state: PassState,
        runner: RegionRunner,
        launch: KnownRuns,
        most: int,
        made: Sequence[int],
        own: Sequence[int],
        carried: Sequence[int],
        folds: Sequence[Node],
        see: Sequence[Callable[[BatchSlice], None]],
        room: Callable[[int], np.ndarray],
        fold: Callable[[Node, Sequence[BatchSlice]], Sequence[np.ndarray]],
    ) -> None:
        self._state, self._runner, self._launch, self._most = state, runner, launch, most
        self._made, self._own, self._folds, self._room, self._fold = made, own, folds, room, fold
        self._see, self._sinks = see, [sink.value for sink in state.one_pass.sinks]
        self._carried, self._folded = carried, {i for node in folds for i in node.inputs}
        self._turns: tuple[Arrays, Arrays] = ({i: room(i) for i in made}, {i: room(i) for i in made})
        self._new: Arrays = {}
        self._links: Mapping[int, int] = {}
        self._linked: Mapping[int, int] = {}
        self._noted: list[tuple[BatchSlice, Arrays]] = []
        self._known = set[int]()
        self._read: dict[int, Arrays] = {}
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        """Return the number of runs that have not ended."""
        return len(self._noted)

    @property
    def can_follow(self) -> bool:
        """True where the next run may be one over what the last one makes: how it takes that is known."""
        return bool(self._noted) and self._failure is None and len(self._links) == len(self._carried)

    def add(self, taken: BatchSlice) -> Mapping[int, np.ndarray]:
        """Note a run over a slice, and launch all where there is no room for another.

        Args:
            taken: its records, and arrays of values that stay.

        Returns:
            Arrays of its results, once all runs have ended. What the next run takes is that of the last one.

        Raises:
            NoRoomTogetherError: see `end`.
        """
        if self._failure is not None:
            raise self._failure
        if not self._noted:
            self._new = {i: self._room(i) for i in self._made}
        made, resident = {id(array): i for i, array in self._new.items()}, self._state.resident
        links = {given: made.get(id(resident[given])) for given in self._carried}
        linked = {given: value for given, value in links.items() if value is not None}
        if self._noted:
            self._links = linked
        results = {**self._new, **self._note(taken, linked)}
        return {i: results[i] if i in results else resident[i] for i in self._sinks}

    def follow(self, taken: BatchSlice) -> Mapping[int, np.ndarray]:
        """Note a run over what the last one makes, where `can_follow`; see `add`. Gives what is its own."""
        return self._note(taken, self._links)

    def _note(self, taken: BatchSlice, linked: Mapping[int, int]) -> Mapping[int, np.ndarray]:
        """Note a run that takes these values that the run before makes, by the given ones that they are now."""
        place, values = len(self._noted), taken.values
        are_turns = len(linked) == len(self._carried)
        again = are_turns and place in self._known
        if not again:
            values.update(self._turns[place % 2])
            values.update(self._linked_arrays(place, linked))
        self._linked = linked
        own = {i: self._room(i) for i in self._own}
        values.update(own)
        if place in self._read:
            values.update(self._read[place])
        self._runner.begin_prepared()
        for command in self._see:
            command(taken)
        # The last run is noted again, when the next one may have been given its own values.
        taken.resident = {**self._state.resident}
        if place not in self._read:
            self._read[place] = {i: values[i] for i in self._folded}
        self._launch.note(place, taken, again=again)
        (self._known.add if are_turns else self._known.discard)(place)
        folded = {node.id: np.empty(node.spec.shape, node.spec.dtype) for node in self._folds}
        self._noted.append((taken, folded))
        if place + 1 == self._most:
            self.end()
        return {**own, **folded}

    def _linked_arrays(self, place: int, linked: Mapping[int, int]) -> Arrays:
        """Return what a run takes of the one before, by given value."""
        before = self._turns[(place + 1) % 2]
        return {given: before[value] for given, value in linked.items()}

    def end(self) -> None:
        """Launch the runs that were noted, wait for them, and make their folds.

        Raises:
            NoRoomTogetherError: where the device has no room for them. They are forgotten, with nothing changed.
            FlowError: if it fails, each time again: what the next run would take is not there.
        """
        if self._failure is not None:
            raise self._failure
        noted, self._noted = self._noted, []
        if not noted:
            return
        try:
            self._do(noted)
        except DeviceFullError as error:
            raise NoRoomTogetherError(
                error.message, element=error.element, site=error.site, got=error.got, hint=error.hint
            ) from error
        except BaseException as error:
            self._failure = error
            raise

    def _do(self, noted: Sequence[tuple[BatchSlice, Arrays]]) -> None:
        """Launch runs, wait for them, and make their folds."""
        place, (last, _) = len(noted) - 1, noted[-1]
        last.values.update(self._linked_arrays(place, self._linked))
        last.values.update(self._new)
        try:
            self._known.discard(place)
            self._launch.note(place, last, again=False)
            self._launch.launch(len(noted))
        finally:
            self._runner.wait()
        self._state.resident.update(self._new)
        for node in self._folds:
            values = self._fold(node, [taken for taken, _ in noted])
            for (_, folded), value in zip(noted, values, strict=True):
                folded[node.id][...] = value
