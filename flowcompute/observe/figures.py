"""The figures of a report, as plotly takes them: plain data made of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flowcompute.metrics import counted
from flowcompute.strategy import compared

Figure = dict[str, Any]

COLUMNS = 1500
"""Neighbouring spans of a kind that are closer than one in so many of the time drawn are drawn as one."""

_BUSY, _IN, _OUT, _DEVICE = "#d95f30", "#c9d3df", "#8fa6c1", "#2a7f62"

_KINDS = {
    "building kernels": "#d9b44a",
    "busy": _BUSY,
    "on the device": _DEVICE,
    "waiting for input": _IN,
    "waiting for output": _OUT,
}

_ROOFS = (("#444", "solid"), ("#444", "dash"), ("#444", "dot"), ("#444", "dashdot"))

_OUTCOMES = {
    "kept": _DEVICE,
    "within the noise": "#8fa6c1",
    "not confirmed": "#d9b44a",
    "not better": "#c9d3df",
    "failed": "#b02a37",
}

_LOWEST = -105.0
"""Percent below which a candidate's bar is cut off: how much slower than twice as slow it is tells nobody anything."""

_LAYOUT: Figure = {
    "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#222"},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "margin": {"l": 10, "r": 20, "t": 10, "b": 45},
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    "hoverlabel": {"font": {"family": "system-ui, sans-serif"}},
}


class Piece(NamedTuple):
    """A bar of the timeline: one span, or several that are too near to be told apart."""

    track: str
    kind: str
    name: str
    began_s: float
    ended_s: float
    spans: int


def _kind(track: str, name: str) -> str:
    if track.startswith("device queue"):
        return "on the device"
    if name == "building kernels":
        return name
    if name.startswith("waiting for input"):
        return "waiting for input"
    return "waiting for output" if name.startswith("waiting") else "busy"


def pieces(events: Sequence[Mapping[str, Any]]) -> Iterator[Piece]:
    """Return the bars of the timeline, track by track.

    Args:
        events: of a trace.
    """
    names = {e["tid"]: str(e["args"]["name"]) for e in events if e.get("name") == "thread_name"}
    spans = [e for e in events if e.get("ph") == "X"]
    apart_s = max((e["ts"] + e["dur"] for e in spans), default=0.0) * 1e-6 / COLUMNS
    for number, track in names.items():
        last: dict[str, Piece] = {}
        for e in (e for e in spans if e["tid"] == number):
            began_s, ended_s, kind = e["ts"] * 1e-6, (e["ts"] + e["dur"]) * 1e-6, _kind(track, e["name"])
            before = last.get(kind)
            if before is not None and began_s - before.ended_s < apart_s and ended_s - before.began_s < 8 * apart_s:
                name = before.name if before.name == e["name"] else kind
                last[kind] = before._replace(name=name, ended_s=ended_s, spans=before.spans + 1)
                continue
            if before is not None:
                yield before
            last[kind] = Piece(track, kind, e["name"], began_s, ended_s, 1)
        yield from last.values()


def timeline(events: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw what each stage did when."""
    bars: dict[str, list[Piece]] = {}
    tracks: dict[str, None] = {}
    end_s = 0.0
    for piece in pieces(events):
        bars.setdefault(piece.kind, []).append(piece)
        tracks.setdefault(piece.track)
        end_s = max(end_s, piece.ended_s)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": kind,
            "marker": {"color": colour},
            "y": [piece.track for piece in bars[kind]],
            "base": [piece.began_s for piece in bars[kind]],
            "x": [piece.ended_s - piece.began_s for piece in bars[kind]],
            "text": [_told(piece) for piece in bars[kind]],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
        }
        for kind, colour in _KINDS.items()
        if kind in bars
    ]
    axis = {"categoryorder": "array", "categoryarray": [*tracks][::-1], "automargin": True, "fixedrange": True}
    layout = {
        "barmode": "overlay",
        "bargap": 0.35,
        "xaxis": {"title": {"text": "seconds since the start"}, "gridcolor": "#e6e6e6", "range": [0, 1.01 * end_s]},
        "yaxis": axis,
        "height": 110 + 34 * max(len(tracks), 1),
    }
    return {"data": data, "layout": _LAYOUT | layout}


def _told(piece: Piece) -> str:
    several = f", {piece.spans} spans" if piece.spans > 1 else ""
    return f"{piece.name}: {1e3 * (piece.ended_s - piece.began_s):.3f} ms at {piece.began_s:.3f} s{several}"


def stages(rows: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw how each stage spent its time."""
    parts = (("busy", "busy_s"), ("waiting for input", "wait_in_s"), ("waiting for output", "wait_out_s"))
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "marker": {"color": _KINDS[name]},
            "y": list(rows),
            "x": [row[field] for row in rows.values()],
            "hovertemplate": "%{y}: %{x:.3f} s " + name + "<extra></extra>",
        }
        for name, field in parts
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "xaxis": {"title": {"text": "seconds"}, "gridcolor": "#e6e6e6", "zeroline": False},
        "yaxis": {"autorange": "reversed", "automargin": True, "fixedrange": True},
        "height": 110 + 34 * max(len(rows), 1),
    }
    return {"data": data, "layout": _LAYOUT | layout}


def throughput(rows: Mapping[str, Mapping[str, Any]]) -> Figure | None:
    """Bytes of streams that kernels read and wrote, by their seconds on the device; None without such."""
    rates = {
        name: (row["bytes_in"] + row["bytes_out"]) / row["device_s"] / 1e9
        for name, row in rows.items()
        if row["device_s"] and row["bytes_in"] + row["bytes_out"]
    }
    if not rates:
        return None
    bar = {
        "type": "bar",
        "orientation": "h",
        "marker": {"color": _DEVICE},
        "y": list(rates),
        "x": list(rates.values()),
        "hovertemplate": "%{y}: %{x:.2f} GB/s<extra></extra>",
    }
    layout = {
        "bargap": 0.35,
        "xaxis": {"title": {"text": "GB/s read and written on the device"}, "gridcolor": "#e6e6e6", "zeroline": False},
        "yaxis": {"autorange": "reversed", "automargin": True, "fixedrange": True},
        "height": 80 + 34 * len(rates),
    }
    return {"data": [bar], "layout": _LAYOUT | layout}


def roofline(done: Sequence[Mapping[str, Any]], limits: Mapping[str, Any] | None) -> Figure | None:
    """Operations a second by operations a byte of each region, under what the device can do; None without limits."""
    seen = [one for one in done if one["operations"] and one["bytes"] and one["seconds"]]
    if not seen or limits is None:
        return None
    intensities = [one["operations"] / one["bytes"] for one in seen]
    rates = {unit: limits["operations_per_s"].get(unit) for unit in sorted({one["unit"] for one in seen})}
    # As far as the roofs' ridges and a little beyond, so that their shape is seen.
    ridges = [rate / limits["bytes_per_s"] for rate in rates.values() if rate]
    low, high = min(*intensities, *ridges) / 4, max(*intensities, *ridges) * 4
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"limit ({unit})",
            "line": {"color": colour, "width": 2, "dash": dash},
            "x": [low, rate / limits["bytes_per_s"], high],
            "y": [low * limits["bytes_per_s"], rate, rate],
            "hovertemplate": f"%{{y:.3s}}op/s at %{{x:.3g}} operations a byte<extra>limit ({unit})</extra>",
        }
        for (unit, rate), (colour, dash) in zip(rates.items(), _ROOFS, strict=False)
        if rate
    ]
    data.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": "regions",
            "marker": {"color": _DEVICE, "size": 11},
            "x": intensities,
            "y": [one["operations"] / one["seconds"] for one in seen],
            "text": [one["region"] for one in seen],
            "textposition": "bottom center",
            "hovertemplate": "%{text}: %{y:.3s}op/s at %{x:.3g} operations a byte<extra></extra>",
        }
    )
    axis = {"type": "log", "gridcolor": "#e6e6e6", "exponentformat": "SI", "dtick": 1}
    layout = {
        "xaxis": axis | {"title": {"text": "operations for each byte of streams"}, "exponentformat": "power"},
        "yaxis": axis | {"title": {"text": "operations a second"}, "automargin": True},
        "height": 420,
    }
    return {"data": data, "layout": _LAYOUT | layout}


def trainings(curves: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure | None:
    """Draw losses and measures by step; None where nothing was trained."""
    named = {
        name if len(curves) == 1 else f"{name} of {training}": one
        for training, mine in curves.items()
        for name, one in mine.items()
    }
    if not named:
        return None
    data = [
        {
            "type": "scatter",
            "mode": "lines" if len(one["steps"]) > 1 else "markers",
            "name": name,
            "x": one["steps"],
            "y": one["numbers"],
            "hovertemplate": f"{name.replace('{', '').replace('%', '')} %{{y:.5g}} at step %{{x}}<extra></extra>",
        }
        for name, one in named.items()
    ]
    layout = {
        "xaxis": {"title": {"text": "step"}, "gridcolor": "#e6e6e6", "zeroline": False},
        "yaxis": {"gridcolor": "#e6e6e6", "automargin": True, "fixedrange": True},
        "showlegend": True,
        "height": 360,
    }
    return {"data": data, "layout": _LAYOUT | layout}


def _measured(trial: Mapping[str, Any]) -> str:
    return f"{compared(trial['gain'])}, {counted(trial['pairs'], 'measurement')}"


def trials(tried: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Draw what each candidate of the tuner gained or lost; None where nothing was tried."""
    if not tried:
        return None
    # What was tried while the job ran, and again after its end, has a bar for each.
    plain = [f"{one['where']}  {one['knobs']}" for one in tried]
    names = [f"{name} ({n})" if (n := plain[: i + 1].count(name)) > 1 else name for i, name in enumerate(plain)]
    gains = [100 * one["gain"] for one in tried]
    lowest, highest = min(*gains, -5.0), max(*gains, 5.0)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": outcome,
            "marker": {"color": colour},
            "y": [name for name, one in zip(names, tried, strict=True) if one["outcome"] == outcome],
            "x": [100 * one["gain"] for one in tried if one["outcome"] == outcome],
            "error_x": {
                "array": [100 * (one["noise"] or 0) for one in tried if one["outcome"] == outcome],
                "color": "#555",
                "thickness": 1,
            },
            "text": [_measured(one) for one in tried if one["outcome"] == outcome],
            "textposition": "none",
            "hovertemplate": "%{y}: %{text}<extra>" + outcome + "</extra>",
        }
        for outcome, colour in _OUTCOMES.items()
        if any(one["outcome"] == outcome for one in tried)
    ]
    layout = {
        "barmode": "overlay",
        "xaxis": {
            "title": {"text": "time saved, % of the default's"},
            "gridcolor": "#e6e6e6",
            "zerolinecolor": "#888",
            "range": [max(1.1 * lowest, _LOWEST), 1.1 * highest],
        },
        "yaxis": {
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "automargin": True,
            "fixedrange": True,
        },
        "height": 110 + 26 * len(names),
    }
    return {"data": data, "layout": _LAYOUT | layout}
