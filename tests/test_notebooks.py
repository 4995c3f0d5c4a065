"""What notebooks show: short forms, pages that are sound and escaped, and how far a run is."""

from __future__ import annotations

import sys
import types
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import Site
from flowcompute.runtime.channels.notebook_line import notebook

EVIL = "<img src=x onerror=alert(1)>"
ITEMS = np.random.default_rng(8).random((500, 6)).astype(np.float32)


class _Page(HTMLParser):
    """The tags and the text of a page, refusing tags that are closed in another order than they were opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, _: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def job() -> Any:
    x = fc.source(ITEMS, name=EVIL)
    return fc.nn.softmax((x - x.mean(axis=0)) / x.std(axis=0), axis=1).named("shares")


@pytest.fixture(scope="module")
def run() -> fc.Run:
    done: fc.Run = job().run(device="cpu", progress=False)
    return done


def page_of(thing: Any) -> _Page:
    page = _Page(thing._repr_html_())
    assert "img" not in page.tags
    return page


def test_an_element_shows_its_graph() -> None:
    page = page_of(job())
    for words in ("shares", "softmax", EVIL, "test_notebooks.py:"):
        assert words in page.text
    assert "details" in page.tags
    assert repr(job()) == "<Compute shares: float32(500, 6) stream>"


def test_a_large_graph_is_not_drawn() -> None:
    x: Any = fc.source(ITEMS)
    for number in range(2000):
        x = x + number
    shown = x._repr_html_()
    assert len(shown) < 1000
    assert "4,001 operations" in _Page(shown).text


def test_a_plan_shows_its_steps(run: fc.Run) -> None:
    plan = run.plan
    page = page_of(plan)
    for words in ("each batch", "kernel k0", "read", "write", "shares", "mean", "test_notebooks.py:", "memory"):
        assert words in page.text
    assert "svg" in page.tags
    assert repr(plan).startswith("<Plan on ")
    assert "2 passes, 3 kernels" in repr(plan)
    assert "\n" not in repr(plan)
    assert len(repr(plan)) < 200
    assert repr(plan.kernels[0]).startswith("<KernelPlan k0 (")
    assert "#pragma OPENCL" in page_of(plan.kernels[0]).text


def test_a_run_shows_its_metrics(run: fc.Run) -> None:
    page = page_of(run)
    for words in (
        "complete: 500 records in each of 2 passes",
        "/s read and written",
        "records in each of 2 passes",
        "std.var",
    ):
        assert words in page.text
    assert repr(run) == "<Run complete: 500 records in each of 2 passes>"
    metrics = run.metrics
    assert page_of(metrics).tags.count("tr") == len(metrics) + 1
    assert repr(metrics).startswith(f"<Metrics of {len(metrics)} stages: {EVIL}, ")
    lines = str(metrics).splitlines()
    assert len(lines) == len(metrics) + 1
    assert lines[0].startswith("stage ")
    assert all(row.place in line for line, row in zip(lines[1:], metrics.values(), strict=True))


def test_a_strategy_shows_its_knobs(run: fc.Run) -> None:
    some = fc.Strategy(depth=3, unroll=2, kernels={"k0": {"unroll": 4}})
    assert repr(some) == "Strategy(unroll=2, depth=3, kernels={'k0': {'unroll': 4}})"
    assert page_of(some).tags.count("tr") == 4
    assert repr(fc.Strategy()) == "Strategy()"
    assert "defaults" in page_of(fc.Strategy()).text
    for strategy in (some, run.strategy):
        assert eval(repr(strategy), {"Strategy": fc.Strategy}) == strategy


# -- progress -------------------------------------------------------------------------------------------


class _Handle:
    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, text: str) -> None:
        self.shown.append(text)


def ipython(monkeypatch: pytest.MonkeyPatch, shell: object, **display: object) -> None:
    """Let a part of IPython be there, as far as a run asks for it."""
    package, displays = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    vars(package)["get_ipython"] = lambda: shell
    vars(displays).update(display)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a notebook has shown."""
    texts: list[str] = []

    def display(text: str, *, display_id: bool) -> _Handle:
        assert display_id
        texts.append(text)
        return _Handle(texts)

    ipython(monkeypatch, types.SimpleNamespace(kernel=object()), display=display, Pretty=str)
    return texts


def test_a_notebook_shows_progress_unless_told_not_to(shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    job().resolve(device="numpy")
    assert shown[0].startswith("pass 1 of 2, 0 of 500 records")
    assert shown[-1].startswith("500 records in each of 2 passes (100%), ")
    assert capsys.readouterr().err == ""
    before = len(shown)
    job().resolve(device="numpy", progress=False)
    assert len(shown) == before


def test_a_display_that_breaks_does_not_break_the_run(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: _Handle, text: str) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(_Handle, "update", broken)
    np.testing.assert_array_equal((fc.source(ITEMS) * 2).resolve(device="numpy"), ITEMS * 2)
    assert len(shown) == 1


@pytest.mark.parametrize("shell", [None, types.SimpleNamespace()])
def test_a_terminal_and_plain_python_are_no_notebooks(shell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert notebook() is None
    ipython(monkeypatch, shell)
    assert notebook() is None


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/home/me/jobs/script.py", "script.py:7"),
        ("/tmp/ipykernel_4711/1234567.py", "cell:7"),
        ("<ipython-input-12-abcdef>", "cell 12:7"),
        ("<stdin>", "<stdin>:7"),
    ],
)
def test_a_line_of_a_cell_is_told_as_one(file: str, text: str) -> None:
    assert Site(file, 7).short == text
