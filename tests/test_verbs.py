"""What the verbs say to those who call them otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SpecError
from flowcompute.flow import tune_ahead
from flowcompute.runtime.options import RunOptions
from flowcompute.strategy import FlowOptions, PlanVerbOptions, StartOptions, ThawFlowOptions, ThawOptions

X = fc.source(np.ones((100, 4), np.float32))
VERBS = {"plan": fc.plan, "start": fc.start, "run": fc.run, "resolve": fc.resolve}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ([X * 2, X * 3], "give them one by one: fc.VERB(a, b), or of a list fc.VERB(*elements)"),
        (fc.histogram(X, bins=2, range=(0, 1)), "give them one by one: fc.VERB(a, b)"),
        ({"w": X * 2}, "give one by its name: fc.VERB(values['w']), or all: fc.VERB(*values.values())"),
        (np.ones(3), "fc.source(array) makes a stream of an array"),
        (3.5, "fc.constant makes one of a value"),
        ([1, 2], "fc.constant makes one of a value"),
    ],
)
def test_what_is_no_element_is_refused_by_the_verb(verb: str, given: Any, hint: str) -> None:
    with pytest.raises(SpecError, match=f"{verb}: cannot take what is no element") as caught:
        VERBS[verb](given, device="numpy")
    assert caught.value.got == type(given).__name__
    assert str(caught.value.hint).startswith(hint.replace("VERB", verb))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_needs_elements(verb: str) -> None:
    with pytest.raises(SpecError, match=rf"{verb}: cannot be called with nothing(.|\n)*at least one element"):
        VERBS[verb](device="numpy")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fc.plan(X * 2, memroy="1MiB"), r'cannot plan: got option "memroy", .*; did you mean "memory"\?$'),
        (lambda: fc.start(X * 2, strateg=None), r'cannot start: .*; did you mean "strategy"\?$'),
        (lambda: fc.run(X * 2, devices="numpy"), r'cannot run: .*; did you mean "device"\?$'),
        (lambda: (X * 2).resolve(memroy="1MiB"), r'cannot resolve: .*; did you mean "memory"\?$'),
        (lambda: fc.plan(X * 2, throttle=1), r'cannot plan: got option "throttle", expected one of memory, '),
        (lambda: fc.open_flow(X * 2, mod="reset"), r'cannot open_flow: .*; did you mean "mode"\?$'),
        (lambda: tune_ahead(X * 2, tun="full"), r'cannot tune_ahead: .*; did you mean "tune"\?$'),
        (lambda: (X * 2).run(elements=3), 'cannot run: got option "elements", expected one of memory, '),
        (lambda: fc.resolve(X * 2, quite_another=1), 'cannot resolve: got option "quite_another", .*trace[^;]*$'),
    ],
)
def test_an_unknown_option_is_refused_by_the_verb_that_was_called(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(("verb", "meant"), [("start", "trace"), ("run", "trace"), ("resolve", "trace")])
def test_a_frozen_job_refuses_unknown_options(verb: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(fc.RunError, match="frozen"):
        (X * 2).sum().run(device="numpy", progress=False, on_batch=lambda run: run.freeze(tmp_path / "kept"))
    with pytest.raises(TypeError, match=rf'cannot {verb}: got option "tracce", .*; did you mean "{meant}"\?$'):
        getattr(fc.thaw(tmp_path / "kept"), verb)(tracce="t.json")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("precision", "exakt", "one of 'exact', 'fast', 'tf32x3'"),
        ("strategy", {"depth": 2}, "an fc.Strategy"),
        ("tune", "fully", 'False, True, "quick" or "full"'),
        ("throttle", -1, "seconds to pause after each batch, from 0 to a day"),
        ("metrics", 1, "True or False"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused(option: str, value: object, expected: str) -> None:
    given: dict[str, Any] = {option: value}
    with pytest.raises(fc.PlanError, match="cannot use this value") as caught:
        (X * 2).run(**given)
    assert (caught.value.element, caught.value.expected) == (option, expected)


def test_a_plan_counts_what_a_checkpoint_takes(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    total = (X * 2).sum(axis=0)
    plain, made = fc.plan(total, device="numpy"), total.plan(device="numpy", checkpoint=kept)
    assert not kept.exists()
    run = fc.run(total, device="numpy", progress=False, checkpoint=kept)
    assert plain.memory.host_bytes < made.memory.host_bytes == run.plan.memory.host_bytes
    with pytest.raises(fc.PlanError, match="cannot resume a job"):
        fc.plan(
            fc.iterate((row for row in range(2)), shape=(), dtype="int64", items=True) * 2,
            checkpoint=tmp_path / "other",
        )


def test_each_option_of_a_verb_has_a_default() -> None:
    """The record has the options of all verbs, and each verb shows its own to `help`."""
    verbs = {"plan": PlanVerbOptions, "start": StartOptions, "open_flow": FlowOptions}
    defaults = {each.name: each.default for each in fields(RunOptions)}
    assert set().union(*(get_type_hints(known) for known in verbs.values())) == set(defaults)
    for verb, known in verbs.items():
        shown = dict(signature(getattr(fc, verb)).parameters)
        shown.pop("elements")
        assert {name: each.default for name, each in shown.items()} == {name: defaults[name] for name in shown}
        assert set(shown) == set(get_type_hints(known))


@pytest.mark.parametrize(
    ("owner", "verb", "known"),
    [
        *((fc.Element, verb, StartOptions) for verb in ("resolve", "run", "start")),
        (fc.Element, "plan", PlanVerbOptions),
        (fc.Element, "flow", FlowOptions),
        *((fc.Frozen, verb, ThawOptions) for verb in ("resolve", "run", "start")),
        (fc.Frozen, "flow", ThawFlowOptions),
    ],
)
def test_methods_name_their_options(owner: type, verb: str, known: type) -> None:
    """To `help`, to editors while they run, and to those that read annotations."""
    method = getattr(owner, verb)
    first, *shown = signature(method).parameters.values()
    assert first.name == "self"
    assert {each.name for each in shown} == set(get_type_hints(known))
    assert all(each.kind is Parameter.KEYWORD_ONLY for each in shown)
    assert method.__annotations__["options"] == f"Unpack[{known.__name__}]"


def test_a_thawed_job_keeps_what_it_was_frozen_with() -> None:
    assert set(get_type_hints(StartOptions)) - set(get_type_hints(ThawOptions)) == {"checkpoint", "precision"}
    assert set(get_type_hints(FlowOptions)) - set(get_type_hints(ThawFlowOptions)) == {
        "checkpoint",
        "precision",
        "mode",
    }
