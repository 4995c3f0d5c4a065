"""Shows how far a run is, from a thread of its own that no stage ever waits for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from rich.filesize import decimal

from flowcompute.imports import LateModule
from flowcompute.metrics import Checkpoints, Progress
from flowcompute.runtime.channels.notebook_line import NotebookLine, notebook

if TYPE_CHECKING:
    from rich import progress as rich_progress
    from rich.console import Console

    from flowcompute.runtime.channels import standard_error
else:
    rich_progress = LateModule("rich.progress")
    standard_error = LateModule("flowcompute.runtime.channels.standard_error")

_BAR_EVERY_S = 0.2
_NOTEBOOK_EVERY_S = 0.5
_LINE_EVERY_S = 5.0
_FAREWELL_S = 2.0


class Shown(Protocol):
    """The numbers of a run, which may be asked for at any time."""

    @property
    def progress(self) -> Progress:
        """The progress."""

    @property
    def bottleneck(self) -> str | None:
        """Name of the stage that the others wait for."""

    @property
    def kept(self) -> Checkpoints:
        """The cost of its checkpoints."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences from the plan, in words."""


class Display:
    """A line of a notebook, a bar on a terminal or plain lines elsewhere, on standard error, until stopped.

    Args:
        record: what to show.
        console: where to show it.
        bar: a bar, or lines.
        line: of a notebook, in place of both.
        name: what lines call the run.
    """

    def __init__(
        self,
        record: Shown,
        console: Console,
        *,
        bar: bool,
        line: NotebookLine | None = None,
        name: str | None = None,
    ) -> None:
        self._record = record
        self._name = name or "flowcompute"
        self._console = console
        self._notebook_line = line
        self._over = threading.Event()
        show = self._show_bar if bar else self._show_lines
        show = show if line is None else self._show_notebook
        self._thread = threading.Thread(target=self._run, args=(show,), name="flowcompute-show", daemon=True)

    @classmethod
    def start(
        cls, record: Shown, progress: bool | None, console: Console | None = None, name: str | None = None
    ) -> Self | None:
        """Start showing, or None where nothing is to be shown.

        Args:
            record: what to show.
            progress: True for a line in a notebook, a bar on a terminal and lines elsewhere. None is the first two, and
                nothing elsewhere. False is nothing.
            console: standard error by default.
            name: what lines call the run.
        """
        if progress is False:
            return None
        shown = notebook() if console is None else None
        console = standard_error.StandardError() if console is None else console
        if shown is not None:
            # As below: what breaks the display does not break the run.
            with contextlib.suppress(Exception):
                display = cls(record, console, bar=False, line=NotebookLine(shown, _now(record)))
                display._thread.start()
                return display
            return None
        if progress is None and not console.is_terminal:
            return None
        display = cls(record, console, bar=console.is_terminal, name=name)
        display._thread.start()
        return display

    def stop(self) -> None:
        """Show the end. A terminal that hangs is left to itself after a moment."""
        self._over.set()
        self._thread.join(_FAREWELL_S)

    def _run(self, show: Callable[[], None]) -> None:
        # A closed or broken terminal must not break the run: whatever it says, the display just ends.
        with contextlib.suppress(Exception):
            show()

    def _show_lines(self) -> None:
        while not self._over.wait(_LINE_EVERY_S):
            self._line()
        progress = self._record.progress
        # What failed before its first record is told by its error.
        if progress.items or progress.total_items == 0:
            self._line()

    def _show_notebook(self) -> None:
        assert self._notebook_line is not None
        while not self._over.wait(_NOTEBOOK_EVERY_S):
            self._notebook_line.show(_now(self._record))
        self._notebook_line.show(_now(self._record))

    def _line(self) -> None:
        line = f"{self._name}: {_now(self._record)}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _show_bar(self) -> None:
        columns = (rich_progress.BarColumn(), rich_progress.TextColumn("{task.description}", markup=False))
        # Standard output is left alone: other runs and other threads write there too.
        with rich_progress.Progress(
            *columns, console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as bar:
            task = bar.add_task("", total=None)
            over = False
            while not over:
                over = self._over.wait(_BAR_EVERY_S)
                progress = self._record.progress
                text = _now(self._record)
                total = None if progress.fraction is None else 1
                bar.update(task, completed=progress.fraction or 0, total=total, description=text, refresh=True)


def _now(record: Shown) -> str:
    return describe(record.progress, record.bottleneck, record.kept, record.notes)


def describe(
    progress: Progress, bottleneck: str | None, kept: Checkpoints | None = None, notes: Sequence[str] = ()
) -> str:
    """Return one line: records, share, pace, time left, notes, bottleneck, age of the checkpoint.

    The share is that of the whole job, the records are those of the pass that it is in. Notes tell of trainings and of
    what was not planned. They come before what a narrow terminal cuts off.
    """
    parts = [progress.records]
    if progress.fraction is not None:
        parts[0] += f" ({progress.fraction:.0%})"
    parts.append(f"{decimal(int(progress.throughput))}/s")
    if progress.done:
        parts.append(f"{progress.seconds:.1f} s")
    elif progress.remaining_s is not None:
        minutes, seconds = divmod(round(progress.remaining_s), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    if progress.skipped:
        parts.append(f"{progress.skipped:,} skipped")
    last = [] if bottleneck is None else [f"busiest: {bottleneck}"]
    if kept is not None and kept.age_s is not None and not progress.done:
        last.append(f"checkpoint {kept.age_s:.0f} s ago")
    if not notes:
        return ", ".join((*parts, *last))
    return "; ".join((", ".join(parts), *notes, *filter(None, [", ".join(last)])))
