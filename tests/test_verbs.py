"""What the verbs say to those who call them otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SpecError

X = fc.source(np.ones((100, 4), np.float32))
VERBS = {"plan": fc.plan, "start": fc.start, "run": fc.run, "resolve": fc.resolve}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ([X * 2, X * 3], "give them one by one: fc.VERB(a, b), or of a list fc.VERB(*elements)"),
        (fc.histogram(X, bins=2, range=(0, 1)), "give them one by one: fc.VERB(a, b)"),
        (np.ones(3), "fc.source(array) makes a stream of an array"),
        (3.5, "fc.constant makes one of a value"),
        ([1, 2], "fc.constant makes one of a value"),
    ],
)
def test_what_is_no_element_is_refused_by_the_verb(verb: str, given: Any, hint: str) -> None:
    with pytest.raises(SpecError, match=f"{verb}: takes elements") as caught:
        VERBS[verb](given, device="numpy")
    assert caught.value.got == type(given).__name__
    assert str(caught.value.hint).startswith(hint.replace("VERB", verb))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_needs_elements(verb: str) -> None:
    with pytest.raises(SpecError, match=f"{verb}: needs at least one element"):
        VERBS[verb](device="numpy")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fc.run(X * 2, devices="numpy"), r"run\(\) got .* 'devices'; is device= meant\?"),
        (lambda: (X * 2).resolve(memroy="1MiB"), r"resolve\(\) got .* 'memroy'; is memory= meant\?"),
        (lambda: (X * 2).run(elements=3), r"run\(\) got an unexpected keyword argument 'elements'"),
        (
            lambda: fc.resolve(X * 2, quite_another=1),
            r"resolve\(\) got an unexpected keyword argument 'quite_another'$",
        ),
    ],
)
def test_an_unknown_option_is_refused_by_the_verb_that_was_called(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()
