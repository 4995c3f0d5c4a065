"""A trace as a page for people: one self-contained HTML file that needs no network."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from flowcompute.errors import DestinationError, SourceError
from flowcompute.files import FILES, Each, ForeignJsonError, Maybe, atomic_write_bytes, expect, explain, read_json_file
from flowcompute.observe._plotly import plotly_script
from flowcompute.observe.figures import Figure, roofline, stages, throughput, timeline, trials
from flowcompute.observe.figures import trainings as training_curves
from flowcompute.strategy import LIMITS_SHAPE, TUNING_SHAPE, Roofline, scaled

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fafaf8; margin: 0 auto; max-width: 1180px;
       padding: 24px 28px 60px }
h1 { font-size: 24px; margin: 0 0 4px } h2 { font-size: 17px; margin: 34px 0 2px }
p { margin: 0 0 8px; color: #555 } .figure, .graph { background: #fff; border: 1px solid #e4e4e0; border-radius: 8px;
padding: 10px; margin-top: 8px; overflow-x: auto }
.figure[id] { overflow: hidden }
.cards { display: flex; flex-wrap: wrap; gap: 10px; margin: 18px 0 }
.card { background: #fff; border: 1px solid #e4e4e0; border-radius: 8px; padding: 8px 14px } .card b { display: block;
font-size: 19px; font-weight: 600 } .card span { color: #666; font-size: 13px }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; font-size: 13px }
th, td { text-align: right; padding: 3px 8px; border-bottom: 1px solid #eee; white-space: nowrap } th { color: #666;
font-weight: 500 } th:first-child, td:first-child { text-align: left } .waited { color: #d95f30; font-weight: 600 }
.place { color: #888; font-weight: 400; padding-left: 6px }
pre { background: #fff; border: 1px solid #e4e4e0; border-radius: 8px; padding: 10px; white-space: pre-wrap;
font-size: 13px }
"""

_NOT_MEASURED = (
    "What the device can do at most is not known, so nothing says how near each region came to it. "
    "<code>flowcompute devices --measure</code> measures it once, for all later runs."
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title><style>{style}</style><script>{script}</script></head>
<body>
{body}
<script>
for (const [id, figure] of Object.entries({figures}))
  Plotly.newPlot(id, figure.data, figure.layout, {{responsive: true, displayModeBar: false}});
</script>
</body></html>
"""

_COLUMNS = (
    ("records", "items", 1, ",.0f"),
    ("passes", "passes", 1, ",.0f"),
    ("batches", "batches", 1, ",.0f"),
    ("MB in", "bytes_in", 1e-6, ",.1f"),
    ("MB out", "bytes_out", 1e-6, ",.1f"),
    ("busy s", "busy_s", 1, ".3f"),
    ("wait in s", "wait_in_s", 1, ".3f"),
    ("wait out s", "wait_out_s", 1, ".3f"),
    ("device s", "device_s", 1, ".3f"),
    ("compile s", "compile_s", 1, ".3f"),
    ("launches", "launches", 1, ",.0f"),
    ("peak MB", "peak_bytes", 1e-6, ",.1f"),
)


_LIMIT_BYTES = 256 << 20
"""The largest trace that is read. Those of ours have some 20 MB; see `SPANS`."""

_SHAPE: dict[str, Any] = {
    "traceEvents": [{"name": str, "ph": str}],
    "otherData": {
        **dict.fromkeys(("flowcompute", "svg", "device", "strategy"), str),
        "run": {
            **dict.fromkeys(
                ("items", "seconds", "bytes_read", "bytes_written", "bytes_per_s", "launches", "peak_bytes"), float
            ),
            "bottleneck": Maybe(str),
            "stages": Each({field: float for _, field, *_ in _COLUMNS if field != "passes"}),
        },
        "lost_spans": Each(int),
        "tuning": TUNING_SHAPE,
        "limits": Maybe(LIMITS_SHAPE),
    },
}

_LATER: dict[str, Any] = {
    "when": str,
    "command": str,
    "trainings": Each(Each({"steps": [int], "numbers": [Maybe(float)]})),
    "run": {
        "pass": Maybe(dict.fromkeys(("number", "passes", "items"), int)),
        "stages": Each({"passes": int, "place": str}),
    },
}
"""The shape of what traces of earlier versions do not have."""

_EVENTS: dict[str, Any] = {"M": {"args": Each(object)}, "X": {"tid": int, "ts": float, "dur": float}}
"""The shapes of events, by their phase."""


def write_report(trace: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Write a page about a run.

    Args:
        trace: what `trace=` wrote.
        target: the page.

    Raises:
        SourceError: if the trace cannot be read, or is none of ours.
        DestinationError: if the page cannot be written.
        RunError: without plotly.
    """
    page = _read(os.fspath(trace), plotly_script())
    try:
        atomic_write_bytes(FILES, os.path.abspath(target), page.encode(errors="replace"))
    except OSError as error:
        said, hint = explain(error)
        raise DestinationError(f"{target} cannot be written: {said}", element="report", hint=hint) from error


def _read(path: str, script: str) -> str:
    """Return the page of a trace in a file."""
    try:
        name = os.path.basename(path)
        return read_json_file(path, lambda trace: page_of(trace, name, script), limit_bytes=_LIMIT_BYTES)
    except OSError as error:
        said, hint = explain(error)
        raise SourceError(f"cannot read {path}: {said}", element="report", hint=hint) from error
    except ForeignJsonError as error:
        raise SourceError(
            f"cannot make a report: {path} is no trace of flowcompute",
            element="report",
            got=str(error),
            hint="run the job with trace=PATH, or --trace PATH",
        ) from error


def page_of(trace: Mapping[str, Any], name: str, script: str) -> str:
    """Return the page.

    Args:
        trace: its content.
        name: what to call it.
        script: plotly.js.

    Raises:
        ForeignJsonError: if it is not what a run has written.
    """
    expect(trace, _SHAPE, "the trace")
    for event in trace["traceEvents"]:
        expect(event, _EVENTS.get(event["ph"], {}), "an event")
    about = _completed(trace["otherData"])
    expect(about, _LATER, "the trace")
    run, rows = about["run"], about["run"]["stages"]
    figures: dict[str, Figure] = {"timeline": timeline(trace["traceEvents"]), "stages": stages(rows)}
    said = " · ".join(one for one in (about["when"], about["command"], f"flowcompute {about['flowcompute']}") if one)
    body = [f"<h1>{escape(name)}</h1>", f"<p>{escape(said)}</p>", _cards(about)]
    body += _section(
        "timeline", "When", "Each stage and the device's queue. Drag to look closer, double-click to go back."
    )
    lost = about["lost_spans"]
    if lost:
        body.append(f"<p>Only the newest spans were kept: {sum(lost.values()):,} are not shown.</p>")
    curves = training_curves(about["trainings"])
    if curves is not None:
        figures["trainings"] = curves
        body += _section("trainings", "Training", "The loss of each step, and what was measured between steps.")
    body += _section("stages", "Where the time went", "The stage with most work is the one that the others wait for.")
    body.append(f'<div class="figure">{_table(rows, run["bottleneck"])}</div>')
    picture = base64.b64encode(about["svg"].encode()).decode()
    body.append("<h2>Graph</h2><p>A frame is a kernel. The redder, the larger its share of the work.</p>")
    body.append(f'<div class="graph"><img alt="the graph" src="data:image/svg+xml;base64,{picture}"></div>')
    speed, roofs = throughput(rows), about["tuning"]["rooflines"]
    if speed is not None:
        figures["speed"] = speed
        body += _section(
            "speed", "Kernels", "Bytes of streams by the seconds that launches took by the device's clock."
        )
    roof = roofline(roofs, about["limits"])
    if roof is not None:
        figures["roofline"] = roof
        body += _section("roofline", "Roofline", "How near each region came to what the device was measured to do.")
    elif roofs:
        body.append(f"<h2>Roofline</h2><p>{_NOT_MEASURED}</p>")
    if roofs:
        body.append(f'<div class="figure">{_roofs(roofs)}</div>')
    tried = trials(about["tuning"]["tried"])
    body.append(f"<h2>Strategy</h2><pre>{escape(about['strategy'])}</pre>")
    if tried is not None:
        figures["trials"] = tried
        body += _section(
            "trials", "Trials", "What other knobs would have saved, measured alternately with the default."
        )
    # A closing tag in somebody's name must not end the script.
    data = json.dumps(figures).replace("<", "\\u003c")
    return _PAGE.format(title=escape(name), style=_STYLE, script=script, body="\n".join(body), figures=data)


def _completed(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a run, with what a trace of an earlier version does not have."""
    run = about["run"]
    rows = {name: {"passes": 1, "place": "", **row} for name, row in run["stages"].items()}
    return {"when": "", "command": "", "trainings": {}, **about, "run": {"pass": None, **run, "stages": rows}}


def _section(name: str, title: str, text: str) -> list[str]:
    return [f"<h2>{title}</h2><p>{text}</p>", f'<div class="figure" id="{name}"></div>']


def _cards(about: Mapping[str, Any]) -> str:
    run = about["run"]
    current = run["pass"] or {"number": 1, "passes": 1, "items": run["items"]}
    streams = f" of {current['streams']:,} streams" if current.get("streams", 1) > 1 else ""
    passes = f" in each of {current['passes']:,} passes" if current["passes"] > 1 else ""
    cards = (
        (f"{current['items']:,}", f"records{streams}{passes}"),
        (f"{run['seconds']:.2f} s", "altogether"),
        (_megabytes(run["bytes_read"]), "read"),
        (_megabytes(run["bytes_written"]), "written"),
        (f"{run['bytes_per_s'] / 1e6:,.0f} MB/s", "read and written"),
        (f"{run['launches']:,}", "launches"),
        (_megabytes(run["peak_bytes"]), "buffers at most"),
        (str(run["bottleneck"] or "nobody"), "is waited for"),
        (str(about["device"]), "device"),
    )
    inside = "".join(f"<div class=card><b>{escape(what)}</b><span>{told}</span></div>" for what, told in cards)
    return f'<div class="cards">{inside}</div>'


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"


def _table(rows: Mapping[str, Mapping[str, Any]], bottleneck: str | None) -> str:
    head = "".join(f"<th>{title}</th>" for title, *_ in _COLUMNS)
    lines = []
    for name, row in rows.items():
        passes = max(row["passes"], 1)
        known = {**row, "passes": passes if passes > 1 else 0, "items": _of_one_pass(row["items"], passes)}
        cells = "".join(f"<td>{_cell(known[field] * factor, form)}</td>" for _, field, factor, form in _COLUMNS)
        mark = ' class="waited"' if name == bottleneck else ""
        place = row["place"]
        where = f" <span class=place>{escape(place)}</span>" if place else ""
        lines.append(f"<tr><td{mark}>{escape(name)}{where}</td>{cells}</tr>")
    return f"<table><tr><th>stage</th>{head}</tr>{''.join(lines)}</table>"


def _roofs(roofs: Sequence[Mapping[str, Any]]) -> str:
    titles = ("region", "bytes/s", "operations/s", "operations a byte", "unit", "of the limit", "bound by")
    lines = ["".join(f"<th>{title}</th>" for title in titles)]
    for one in (Roofline(**each) for each in roofs):
        share = "" if one.share is None else f"{one.share:.0%}"
        seconds = max(one.seconds, 1e-12)
        rates = (scaled(one.bytes / seconds, "B/s"), scaled(one.operations / seconds, "op/s"))
        cells = (one.region, *rates, f"{one.intensity:.3g}", one.unit, share, one.bound or "")
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    return f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>"


def _of_one_pass(items: float, passes: int) -> float:
    """Return the records of a pass where each had as many, else those of all."""
    return items // passes if items % passes == 0 else items


def _cell(number: float, form: str) -> str:
    return format(number, form) if number else ""
