"""The page about a run: what is on it, what it refuses, and that a browser draws it."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import subprocess
import sys
from html import escape
from html.parser import HTMLParser
from importlib.util import find_spec

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.errors import RunError, SourceError
from flowcompute.observe import _plotly
from flowcompute.observe import report_page as report
from flowcompute.observe.figures import COLUMNS, pieces, timeline
from flowcompute.observe.report_page import write_report
from flowcompute.runtime.events.report_facts import _command

EVIL = "</script><img src=x onerror=alert(1)>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def trace(tmp_path):
    x = fc.source(np.arange(4_000, dtype=np.float32).reshape(-1, 4), name=EVIL)
    path = tmp_path / "t.json"
    fc.run(fc.tanh(x).sum(axis=1), device="numpy", strategy=fc.Strategy(batch_bytes=4_000), progress=False, trace=path)
    return path


@pytest.fixture
def page(trace, monkeypatch):
    monkeypatch.setattr(report, "plotly_script", lambda: "/* plotly.js */")
    write_report(trace, trace.with_suffix(".html"))
    return trace.with_suffix(".html").read_text()


EXP_COST = fc.tanh.op.cost


def figures(page: str) -> dict:
    return json.loads(re.search(r"Object\.entries\((.*)\)\)$", page, re.MULTILINE)[1])


def test_the_page_says_what_the_run_did(page):
    drawn = figures(page)
    assert list(drawn) == ["timeline", "stages"]
    assert {"busy", "waiting for input"} <= {bar["name"] for bar in drawn["timeline"]["data"]}
    assert {"compute", EVIL} <= {track for bar in drawn["timeline"]["data"] for track in bar["y"]}
    assert drawn["stages"]["data"][0]["y"][0] == EVIL
    assert "<td>1,000</td>" in page
    assert "of the work" in base64.b64decode(re.search(r"svg\+xml;base64,([^\"]*)", page)[1]).decode()
    for name in drawn:
        assert f'<div class="figure" id="{name}">' in page


def test_the_page_says_when_by_what_and_how_much(trace, page):
    about = json.loads(trace.read_text())["otherData"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", about["when"])
    assert about["when"] in page
    assert escape(about["command"]) in page
    assert "<b>1,000</b><span>records</span>" in page
    assert "<b>0.0 MB</b><span>written</span>" in page
    assert "MB/s</b><span>read and written</span>" in page
    assert "flowcompute devices --measure" in page
    assert "<span class=place>test_report.py:" in page


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["/usr/local/bin/flowcompute", "run", "job:job", "--memory", "1 GB"],
            "flowcompute run job:job --memory '1 GB'",
        ),
        (["/x/flowcompute/__main__.py", "plan", "j:j"], "flowcompute plan j:j"),
        (["jobs/daily.py", "--fast"], "python jobs/daily.py --fast"),
        (["-c"], "typed in, or a notebook"),
        (["/x/ipykernel_launcher.py", "-f", "k.json"], "typed in, or a notebook"),
        ([""], "typed in, or a notebook"),
        ([], "typed in, or a notebook"),
    ],
)
def test_the_command_is_as_typed(words, text):
    assert _command(words) == text


def test_records_of_two_passes_are_those_of_one(tmp_path):
    x = fc.source(np.ones((1_000, 4), np.float32), name="x")
    path = tmp_path / "t.json"
    fc.run(x - x.mean(axis=0), device="numpy", progress=False, trace=path)
    page = report.page_of(json.loads(path.read_text()), "t", "")
    assert "<b>1,000</b><span>records in each of 2 passes</span>" in page
    assert "2,000" not in page


def test_traces_of_earlier_versions_are_read(trace):
    content = json.loads(trace.read_text())
    for key in ("when", "command"):
        del content["otherData"][key]
    del content["otherData"]["run"]["pass"]
    for row in content["otherData"]["run"]["stages"].values():
        del row["passes"], row["place"]
    assert "<b>1,000</b><span>records</span>" in report.page_of(content, "t", "")


def test_names_are_text_and_the_page_loads_nothing(page):
    assert page.count("</script>") == 2
    assert EVIL not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "default-src 'none'" in page


def test_near_spans_are_drawn_together_and_few_remain():
    names = [{"name": "thread_name", "ph": "M", "tid": 1, "args": {"name": "a"}}]
    spans = [{"name": "reading", "ph": "X", "tid": 1, "ts": 10.0 * i, "dur": 8.0} for i in range(50_000)]
    drawn = list(pieces([*names, *spans]))
    assert len(drawn) < COLUMNS
    assert sum(piece.spans for piece in drawn) == 50_000
    assert (drawn[0].began_s, drawn[-1].ended_s) == (0.0, pytest.approx(0.499998))
    assert timeline([])["data"] == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": [], "otherData": {}}'])
def test_what_is_no_trace_is_refused(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(SourceError, match="no trace of flowcompute"):
        write_report(tmp_path / "t.json", tmp_path / "t.html")
    with pytest.raises(SourceError, match="cannot read"):
        write_report(tmp_path / "none.json", tmp_path / "t.html")
    assert not (tmp_path / "t.html").exists()


def test_without_plotly_it_says_what_to_install(trace, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert main(["report", str(trace)]) == 1
    assert "flowcompute[report]" in capsys.readouterr().err
    with pytest.raises(RunError):
        _plotly.plotly_script()


def test_the_command_runs_a_job_and_writes_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "plotly_script", lambda: "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "report_job.py").write_text("import flowcompute as fc\njob = fc.range(1000).sum()\n")
    assert main(["report", "report_job:job", "--device", "numpy", "--no-progress"]) == 0
    assert capsys.readouterr().out == "report_job-job.html\n"
    assert "report_job-job" in (tmp_path / "report_job-job.html").read_text()


class Tags(HTMLParser):
    """What a page is made of, refusing tags that are closed in another order than they were opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


TRIED = [
    {"where": "run", "knobs": "depth=4", "gain": -3.5, "noise": None, "pairs": 1, "outcome": "not better"},
    {"where": "k0", "knobs": "unroll=2", "gain": 0.25, "noise": 0.02, "pairs": 9, "outcome": "kept"},
    {"where": "run", "knobs": "depth=4", "gain": -0.5, "noise": None, "pairs": 1, "outcome": "not better"},
]


def test_every_figure_is_whole_and_has_its_place(trace):
    content = json.loads(trace.read_text())
    about = content["otherData"]
    region = about["tuning"]["rooflines"][0]
    assert (region["region"], region["operations"]) == ("sum", 1_000 * 4 * (EXP_COST + 1))
    about["tuning"]["tried"] = TRIED
    about["limits"] = {"bytes_per_s": 1e9, "operations_per_s": {"float32": 1e11}, "when": 1}
    about["run"]["stages"]["sum"]["device_s"] = 0.5
    page = report.page_of(content, "t.json", "")
    tags, drawn = Tags(page), figures(page)
    assert tags.open == []
    assert sorted(tags.ids) == sorted(drawn) == ["roofline", "speed", "stages", "timeline", "trials"]
    for figure in drawn.values():
        for part in figure["data"]:
            assert part["type"] in ("bar", "scatter")
            assert len(part["x"]) == len(part["y"]) > 0
            assert all(isinstance(number, int | float) and math.isfinite(number) for number in part["x"])
        assert figure["layout"]["xaxis"]["title"]["text"]
    limit, regions = drawn["roofline"]["data"]
    assert limit["y"][1:] == [1e11, 1e11]
    assert limit["y"][0] == pytest.approx(limit["x"][0] * 1e9)
    assert regions["text"] == ["sum"]
    assert regions["x"] == [pytest.approx(4 * (EXP_COST + 1) / 20)]
    assert drawn["trials"]["layout"]["yaxis"]["categoryarray"] == ["run  depth=4 (2)", "k0  unroll=2", "run  depth=4"]
    # What takes four times as long does not squeeze the others to nothing.
    assert drawn["trials"]["layout"]["xaxis"]["range"][0] >= -110
    assert "<td>float32</td>" in page


def missing() -> str | None:
    """Why no browser draws the page here."""
    if CHROMIUM is None:
        return "there is no chromium, chromium-browser or google-chrome on the PATH"
    return None if find_spec("plotly") is not None else "plotly is not installed"


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_browser_draws_it(trace):
    target = trace.with_suffix(".html")
    write_report(trace, target)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={trace.parent / 'profile'}"]
    said = subprocess.run(
        [CHROMIUM, *flags, "--virtual-time-budget=20000", "--dump-dom", target.as_uri()],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    ).stdout
    assert said.count('class="main-svg"') >= 4
    assert "seconds since the start" in said.rpartition("</script>")[0].rpartition("<script>")[0]
