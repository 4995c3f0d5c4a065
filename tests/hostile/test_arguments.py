"""Every public function and verb with hostile arguments: refused as FlowErrors, at once and in little memory."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import FlowError
from flowcompute.runtime.options import RunOptions
from tests.hostile.calls import HOSTILE, HOSTILE_LAZY, NUMBERS, VERBS, Call, functions, operators

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "full"
CALLS = functions() + operators()
SECONDS = 20
"""After that a call hangs: far beyond what any takes on a busy machine."""
ROOM_BYTES = 2 << 30


@pytest.fixture(autouse=True)
def bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bound memory, so that what allocates without bound fails, and go where relative paths do no harm."""
    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, hard))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _hangs(*_: object) -> None:
    raise AssertionError("the call hangs")


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(call: Callable[[], Any]) -> BaseException | None:
    """Return the exception of a call that is none of ours; None where it was refused in order, or succeeded."""
    try:
        with at_once():
            call()
    except fc.FlowError as error:
        assert str(error)
        # A label with nothing behind it.
        assert "" not in (error.expected, error.got, error.hint), str(error)
    except Exception as error:  # noqa: BLE001 - what is looked for
        return error
    return None


def told(name: str, key: Any, value: Any, error: BaseException) -> str:
    shown = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "10**..."
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = "" if where is None else f"{Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno}"
    return f"{name}({key}={shown[:60]}): {type(error).__name__}: {str(error)[:80]} [{place}]"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_one_hostile_argument(call: Call) -> None:
    call.at(call.arguments) if call.name not in ("open", "weights") else None
    foreign = []
    for key in call.arguments:
        for value in [*HOSTILE, *(make() for make in HOSTILE_LAZY)]:
            error = outcome(lambda key=key, value=value: call.at({**call.arguments, key: value}))
            if error is not None:
                foreign.append(told(call.name, key, value, error))
    assert not foreign, "\n".join(foreign)


@pytest.mark.parametrize("call", CALLS if LONG else CALLS[::8], ids=lambda call: call.name)
@settings(max_examples=1000 if LONG else 30)
@given(data=st.data())
def test_several_hostile_arguments(call: Call, data: st.DataObject) -> None:
    keys = data.draw(st.sets(st.sampled_from(sorted(call.arguments, key=str)))) if call.arguments else set()
    values = {key: HOSTILE[data.draw(st.integers(0, len(HOSTILE) - 1))] for key in keys}
    error = outcome(lambda: call.at({**call.arguments, **values}))
    assert error is None, "\n".join(told(call.name, key, values[key], error) for key in keys)


@pytest.mark.parametrize("make", [fc.feed, lambda **given: fc.open("x.bin", format="raw", **given)])
def test_a_name_that_is_none_beside_another_mistake(make: Callable[..., Any]) -> None:
    with pytest.raises(FlowError, match=r"cannot|nonsense"):
        make(shape=(3,), dtype="nonsense", name=NUMBERS)


@pytest.mark.parametrize(("verb", "option"), [(verb, option) for verb in VERBS for option in VERBS[verb]])
def test_one_hostile_option(verb: str, option: str) -> None:
    foreign = []
    fed = fc.feed((), "f4") * 2
    elements = fed if verb == "open_flow" else fc.source(np.arange(4.0)) * 2
    for value in HOSTILE:
        options = {"device": "numpy"} | ({"progress": False} if verb == "resolve" else {}) | {option: value}
        error = outcome(lambda options=options: getattr(fc, verb)(elements, **options))
        if error is not None:
            foreign.append(told(verb, option, value, error))
    assert not foreign, "\n".join(foreign)


def test_hostile_pauses() -> None:
    """A run with a long throttle is to take long, so these are read only."""
    foreign = [
        told("throttle", "throttle", value, error)
        for value in HOSTILE
        if (error := outcome(lambda value=value: RunOptions(throttle=value))) is not None
    ]
    assert not foreign, "\n".join(foreign)


@pytest.mark.parametrize("verb", ["plan", "run", "start", "resolve", "open_flow"])
def test_hostile_elements(verb: str) -> None:
    foreign = []
    for value in HOSTILE:
        if isinstance(value, fc.Element) and hasattr(value, "spec"):
            continue
        error = outcome(lambda value=value: getattr(fc, verb)(value))
        if error is not None:
            foreign.append(told(verb, "element", value, error))
    assert not foreign, "\n".join(foreign)
    assert outcome(lambda: getattr(fc, verb)(NUMBERS.T)) is None
