"""The page of a run: what it shows, from the events and the numbers of the run."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from flowcompute.errors import PlanError, short_repr
from flowcompute.metrics import Snapshot
from flowcompute.observe.consumer import Consumer, RunView
from flowcompute.observe.events import RunEnded, Take, TrainingStepped, TrialFailed, TrialMeasured
from flowcompute.observe.json_log import plain
from flowcompute.observe.loss_curves import LossCurves
from flowcompute.observe.page.page_server import PageServer
from flowcompute.ring import Ring
from flowcompute.strategy import Candidate, describe_candidate

_LAST_PORT = 65535

MOST_ROWS = 256
"""Stages and trials that are shown; a page is for people."""

_MOST_CHARS = 400

_MOST_CURVES, _MOST_POINTS = 8, 300

_MOST_KERNEL_CHARS = 1 << 20

_PICTURE_S = 2.0
"""Seconds between two pictures of the graph, more where drawing takes long."""

_PICTURE_SHARE = 200
"""A picture is drawn again after so many times the seconds that it took."""

_LOSSES_S = 1.0


def check_page_port(port: object) -> None:
    """Check `page=`.

    Raises:
        PlanError: if it is no port.
    """
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= _LAST_PORT:
        raise PlanError(
            "cannot use this value",
            element="page",
            expected="a port of this machine, 0 for any free one",
            got=short_repr(port),
        )


class LivePage(Consumer):
    """A page from its making until `close`.

    Args:
        port: where to serve it; 0 for any free port.
        view: of the run.
        name: what the page calls the run, if anything.

    Attributes:
        address: of the page, with its token.

    Raises:
        RunError: if the port cannot be had, or a package is not installed.
    """

    def __init__(self, port: int, view: RunView, name: str | None = None) -> None:
        self._view = view
        self._name = name or "run"
        self._lock = threading.Lock()
        self._trials: Ring[dict[str, Any]] = Ring(MOST_ROWS)
        self._curves = LossCurves()
        self._stepped = False
        self._ending: str | None = None
        self._over = False
        self._kernels: str | None = None
        self._picture, self._picture_s = "null", -math.inf
        self._losses, self._losses_s = "[]", -math.inf
        self._server = PageServer(port, self.messages)
        self.address = self._server.address

    def takes(self) -> Mapping[type, Take]:
        """See `Consumer.takes`."""
        return {
            TrialMeasured: self._measured,
            TrialFailed: self._failed,
            TrainingStepped: self._learnt,
            RunEnded: self._ended,
        }

    def close(self) -> str | None:
        """Tell listeners that it is over, and stop serving."""
        self._over = True
        self._server.close()
        return None

    # -- events -------------------------------------------------------------------------------------

    def _measured(self, event: TrialMeasured) -> None:
        ratio = event.ratio if math.isfinite(event.ratio) else None
        with self._lock:
            self._trials.add({"where": event.where, "tried": _told(event.candidate), "ratio": ratio, "problem": ""})

    def _failed(self, event: TrialFailed) -> None:
        with self._lock:
            self._trials.add(
                {
                    "where": event.where,
                    "tried": _told(event.candidate),
                    "ratio": None,
                    "problem": event.problem[:_MOST_CHARS],
                }
            )

    def _learnt(self, event: TrainingStepped) -> None:
        with self._lock:
            self._curves.take(event)
            self._stepped = True

    def _ended(self, event: RunEnded) -> None:
        # The error itself is not kept: it holds the frames in which it was raised.
        self._ending = "" if event.error is None else f"{type(event.error).__name__}: {event.error}"[:2000]

    # -- what is shown ------------------------------------------------------------------------------

    def messages(self) -> Mapping[str, str]:
        """Return what the page shows: its parts by name, as JSON. A part that is as it was is the same text."""
        over, now_s = self._over, time.monotonic()
        if self._kernels is None:
            self._kernels = _json(_bounded(self._view.kernels()))
        if now_s >= self._picture_s or over:
            svg = self._view.picture()
            took_s = time.monotonic() - now_s
            self._picture_s = now_s + max(_PICTURE_S, _PICTURE_SHARE * took_s)
            self._picture = _json(svg)
        if self._stepped and (now_s >= self._losses_s or over):
            self._stepped, self._losses_s = False, now_s + _LOSSES_S
            with self._lock:
                curves = self._curves.plain()
            self._losses = _json(_thinned(curves))
        return {
            "graph": self._picture,
            "kernels": self._kernels,
            "losses": self._losses,
            # Last, since a page leaves when this says that the run is over.
            "now": _json(self._numbers(over)),
        }

    def _numbers(self, over: bool) -> dict[str, Any]:
        now: Snapshot = self._view.snapshot()
        numbers = plain(now)
        stages = list(numbers.pop("stages").items())
        with self._lock:
            trials = list(self._trials.items())
        return {
            **numbers,
            "name": self._name,
            "state": self._state(over),
            "error": self._ending or "",
            "over": over,
            "planned_bytes": self._view.planned_bytes,
            "stages": [{"name": name, **row} for name, row in stages[:MOST_ROWS]],
            "more_stages": max(len(stages) - MOST_ROWS, 0),
            "trials": trials,
        }

    def _state(self, over: bool) -> str:
        if self._ending is None:
            return "ended" if over else "running"
        if self._ending:
            return "failed"
        return "done" if over else "finishing"


def _told(candidate: Candidate) -> str:
    return describe_candidate(candidate)[:_MOST_CHARS]


def _bounded(kernels: Mapping[str, str]) -> list[dict[str, str]]:
    """Return kernels until their texts are long."""
    shown: list[dict[str, str]] = []
    left = _MOST_KERNEL_CHARS
    for name, text in kernels.items():
        if len(text) > left:
            shown.append({"name": f"{len(kernels) - len(shown):,} more", "text": "see run.plan.kernels"})
            break
        left -= len(text)
        shown.append({"name": name, "text": text})
    return shown


def _thinned(curves: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the first curves, with as many points as can be told apart."""
    flat = [(f"{training} {what}", curve) for training, mine in curves.items() for what, curve in mine.items()]
    shown = []
    for name, curve in flat[:_MOST_CURVES]:
        every = -(-len(curve["steps"]) // _MOST_POINTS) or 1
        shown.append({"name": name, "steps": curve["steps"][::every], "numbers": curve["numbers"][::every]})
    return shown


def _json(value: Any) -> str:
    """Return one line of JSON, which can be an event's data."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
