"""All options of a run in one record, checked in one place."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from inspect import Parameter, Signature
from typing import Any, Self, TypeVar, get_args, get_type_hints

from flowcompute.errors import PlanError, short_repr
from flowcompute.imports import dataclass
from flowcompute.observe import Observe
from flowcompute.runtime.checkpoints import CheckpointPolicy, checkpoint_path
from flowcompute.strategy import (
    Devices,
    Every,
    Log,
    Mode,
    Precision,
    Size,
    Strategy,
    Tune,
    default_memory_bytes,
    parse_bytes,
)

_MOST_S = 1e15
"""Seconds beyond which clocks do not count."""

_MOST_THROTTLE_S = 86_400

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of all verbs, with their defaults. `fc.plan`, `fc.start` and `fc.open_flow` say what each means.

    Raises:
        PlanError: if an option has a value that it cannot have; the error's element is the option.
    """

    memory: Size | None = None
    device: Devices | None = "auto"
    device_memory: Size | None = None
    strategy: Strategy | None = None
    precision: Precision = "exact"
    isolate: bool = False
    launch_timeout_s: float | None = None
    name: str | None = None
    progress: bool | None = None
    throttle: float = 0.0
    on_batch: Callable[[Any], object] | None = None
    stall_timeout_s: float | None = 120.0
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: Every = "auto"
    accept_touched: bool = False
    tune: Tune = False
    metrics: bool = True
    metrics_port: int | str | None = None
    metrics_log: Log | None = None
    trace: str | os.PathLike[str] | None = None
    page: int | None = None
    mode: Mode = "reset"

    @classmethod
    def parse(cls, verb: str, given: Mapping[str, Any], known: type) -> Self:
        """Return the record of the options that were given to a verb.

        Args:
            verb: the name by which the user called it.
            given: the options by name.
            known: the `TypedDict` of the options that the verb has.

        Raises:
            TypeError: if the verb has no such option.
            PlanError: if an option has a value that it cannot have.
        """
        check_names(verb, given, known)
        return cls(**given)

    def __post_init__(self) -> None:
        self._check_plan()
        self._check_pace()
        if not (isinstance(self.tune, bool) or _is_word(self.tune, ("quick", "full"))):
            raise _bad_value("tune", 'False, True, "quick" or "full"', self.tune)
        if not _is_word(self.mode, get_args(Mode)):
            raise _bad_value("mode", "'reset' or 'cumulative'", self.mode)
        if self.checkpoint is not None:
            checkpoint_path(self.checkpoint)
        CheckpointPolicy.parse(self.checkpoint_every)
        if not isinstance(self.accept_touched, bool):
            raise _bad_value("accept_touched", "True or False", self.accept_touched)
        if self.checkpoint is None and self.checkpoint_every != "auto":
            raise PlanError(
                "cannot use checkpoint_every= without checkpoint=",
                element="checkpoint_every",
                got=f"checkpoint_every={self.checkpoint_every!r} alone",
                hint="say where to keep checkpoints: checkpoint=",
            )
        _ = self.observe

    def _check_plan(self) -> None:
        """Check what a plan depends on. The devices and isolation are checked with the machine, by the planner."""
        if not _is_word(self.precision, get_args(Precision)):
            known = get_args(Precision)
            near = nearest(self.precision, known)
            hint = f'precision="{near}"' if near else 'leave it out for "exact"'
            raise _bad_value("precision", f"one of {', '.join(map(repr, known))}", self.precision, hint)
        if not isinstance(self.strategy, Strategy | None):
            raise _no_strategy(self.strategy)
        if self.memory is not None:
            parse_bytes(self.memory)
        if self.device_memory is not None:
            parse_bytes(self.device_memory, "device_memory")

    def _check_pace(self) -> None:
        """Check what is asked for while batches flow."""
        if not _is_number(self.throttle) or not 0 <= self.throttle <= _MOST_THROTTLE_S:
            raise _bad_value("throttle", "seconds to pause after each batch, from 0 to a day", self.throttle)
        if self.stall_timeout_s is not None and (not _is_number(self.stall_timeout_s) or self.stall_timeout_s <= 0):
            raise _bad_value("stall_timeout_s", "seconds, more than 0, or None", self.stall_timeout_s)
        if self.name is not None and not (isinstance(self.name, str) and self.name and self.name.isprintable()):
            raise _bad_value("name", "printable text", self.name)
        if self.on_batch is not None and not callable(self.on_batch):
            raise _bad_value("on_batch", "a function that takes the run", self.on_batch)
        if not isinstance(self.progress, bool | None):
            raise _bad_value("progress", "True, False or None", self.progress)

    @property
    def memory_bytes(self) -> int:
        """The budget on the host."""
        return default_memory_bytes() if self.memory is None else parse_bytes(self.memory)

    @property
    def device_memory_bytes(self) -> int | None:
        """The budget on a discrete device; None for most of its memory."""
        return None if self.device_memory is None else parse_bytes(self.device_memory, "device_memory")

    @property
    def checkpoint_path(self) -> str | None:
        """The absolute path of the checkpoint; None where none is asked for."""
        return None if self.checkpoint is None else checkpoint_path(self.checkpoint)

    @property
    def observe(self) -> Observe:
        """The places where the numbers of the run go."""
        return Observe(self.metrics, self.metrics_port, self.trace, self.metrics_log, self.name, self.page)


def check_names(verb: str, given: Mapping[str, Any], known: type) -> None:
    """Refuse options that a verb does not have.

    Args:
        verb: the name by which the user called it.
        given: the options by name.
        known: the `TypedDict` of the options that the verb has.

    Raises:
        TypeError: as Python would, with the options that there are and the nearest of them.
    """
    names = _names(known)
    for option in given:
        if option not in names:
            near = nearest(option, names)
            meant = f'; did you mean "{near}"?' if near else ""
            raise TypeError(f'cannot {verb}: got option "{option}", expected one of {", ".join(names)}{meant}')


@functools.cache
def _names(known: type) -> tuple[str, ...]:
    """Return the names of a verb's options; finding out takes as long as a hand-over to a thread."""
    return tuple(get_type_hints(known))


def nearest(given: object, known: tuple[str, ...]) -> str | None:
    """Return the known name that is most like the given one, None if none is."""
    return next(iter(get_close_matches(given, known, 1)), None) if isinstance(given, str) else None


def shows_options(known: type, *, method: bool = False) -> Callable[[F], F]:
    """Return a decorator that gives a verb the signature that its options have, for `help` and editors.

    Args:
        known: the `TypedDict` of the options that the verb has.
        method: whether it is a method of what it runs, in place of a function of elements.
    """
    names = _names(known)
    options = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in fields(RunOptions)
        if each.name in names
    ]
    elements = Parameter("elements", Parameter.VAR_POSITIONAL, annotation="Element")
    first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD) if method else elements

    def show(verb: F) -> F:
        verb.__signature__ = Signature([first, *options])  # type: ignore[attr-defined]
        return verb

    return show


def _no_strategy(given: object) -> PlanError:
    knobs = given.items() if isinstance(given, dict) else ()
    hint = f"strategy=fc.Strategy({', '.join(f'{knob}={value!r}' for knob, value in knobs) or 'depth=3'})"
    return PlanError(
        "cannot use this value", element="strategy", expected="an fc.Strategy", got=type(given).__name__, hint=hint
    )


def _bad_value(option: str, expected: str, got: object, hint: str | None = None) -> PlanError:
    return PlanError("cannot use this value", element=option, expected=expected, got=short_repr(got), hint=hint)


def _is_word(value: object, words: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in words


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_MOST_S <= value <= _MOST_S
