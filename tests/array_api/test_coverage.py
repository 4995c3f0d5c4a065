"""The namespace has the standard's names with its signatures, and its table and page tell the truth."""

from __future__ import annotations

import inspect
import operator
import re
from pathlib import Path
from typing import Any

import pytest

import flowcompute.array_api as xp
from flowcompute.array_api import COVERAGE
from tests.array_api.signatures import INFO, METHODS, SIGNATURES

PAGE = (Path(__file__).parents[2] / "docs" / "array_api.md").read_text()
FUNCTIONS = [name for name in COVERAGE if not name.startswith("x.")]


def plain(function: Any) -> str:
    """A signature without annotations."""
    signature = inspect.signature(function)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def found(name: str) -> Any:
    return operator.attrgetter(name)(xp)


def test_every_function_of_the_standard_is_in_the_table() -> None:
    constants = {"e", "inf", "nan", "newaxis", "pi", "__array_api_version__"}
    dtypes = {name for name, entry in COVERAGE.items() if entry.section == "Data types"}
    assert set(FUNCTIONS) - constants - dtypes == set(SIGNATURES)
    assert len(dtypes) == 13


@pytest.mark.parametrize("name", [name for name in SIGNATURES if COVERAGE[name].state == "there"])
def test_a_function_has_the_standards_signature(name: str) -> None:
    assert plain(found(name)) == SIGNATURES[name]
    assert found(name).__doc__


def test_methods_have_the_standards_signatures() -> None:
    assert {name: plain(getattr(xp.LazyArray, name)) for name in METHODS} == METHODS
    assert {name: plain(getattr(type(xp.__array_namespace_info__()), name)) for name in INFO} == INFO


@pytest.mark.parametrize("name", COVERAGE)
def test_the_table_tells_what_there_is(name: str) -> None:
    entry = COVERAGE[name]
    if name.startswith("x."):
        assert hasattr(xp.LazyArray, name.removeprefix("x."))
    elif entry.state == "there":
        assert found(name) is not None or name == "newaxis"
        assert name.partition(".")[0] in xp.__all__
    else:
        with pytest.raises(AttributeError, match=r"has no") as caught:
            found(name)
        assert entry.note in str(caught.value) or "." in name
    assert (entry.state == "refused") <= bool(entry.note)


def test_what_is_refused_and_what_is_unknown_is_told() -> None:
    for name, reason in (
        ("fft", "no complex dtypes"),
        ("complex64", "no complex dtypes"),
        ("unique_all", "the stream"),
    ):
        with pytest.raises(AttributeError, match=f"has no '{name}': .*{reason}"):
            getattr(xp, name)
    with pytest.raises(AttributeError, match=r"has no 'einsum'$"):
        xp.einsum  # noqa: B018


def test_names_that_are_neither_the_standards_nor_the_wrappers_are_few() -> None:
    extra = set(xp.__all__) - set(COVERAGE) - {name.partition(".")[0] for name in COVERAGE}
    assert extra == {"LazyArray", "COVERAGE", "StandardName"}


def test_only_public_names_are_completed() -> None:
    assert dir(xp) == sorted(xp.__all__)


def test_the_page_is_a_program_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(code, {})
    assert "[" in capsys.readouterr().out


def test_the_page_shows_the_table() -> None:
    section, states, notes = "", {}, {}
    for line in PAGE.splitlines():
        if heading := re.fullmatch(r"### (.+)", line):
            section = heading[1]
        elif listed := re.fullmatch(r"- (there|refused): (.+)", line):
            states |= dict.fromkeys(re.findall(r"`([^`]+)`", listed[2]), (section, listed[1]))
        elif section and (row := re.fullmatch(r"\| (`.+?`) \| (.+) \|", line)):
            notes |= dict.fromkeys(re.findall(r"`([^`]+)`", row[1]), row[2])
    assert states == {entry.name: (entry.section, entry.state) for entry in COVERAGE.values()}
    assert notes == {entry.name: entry.note for entry in COVERAGE.values() if entry.note}
