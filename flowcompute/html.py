"""Parts of pages for people: tables and texts that notebooks show. All texts are escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowcompute.imports import html

_LEFT = ' style="text-align:left;vertical-align:top"'

MOST_LINES = 40
"""Lines of a text that is shown at once; a longer one is shown when somebody opens it."""


def heading(what: str, told: str = "") -> str:
    """Return a line about what follows, the first part in bold."""
    return f"<div><b>{html.escape(what)}</b> {html.escape(told)}</div>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts; its first column and those of texts are aligned left, numbers right."""
    titles = "".join(f"<th{_LEFT}>{html.escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    number = text[:1].isdigit() and " of " not in text
    return f"<td{'' if number else _LEFT}>{html.escape(text)}</td>"


def preformatted(text: str) -> str:
    """Return text whose lines and blanks stay."""
    return f'<pre style="line-height:1.3">{html.escape(text)}</pre>'


def folded(summary: str, body: str, *, unfold: bool = False) -> str:
    """Return what is shown when somebody opens it, or at once.

    Args:
        summary: the line that is always shown, as text.
        body: HTML.
        unfold: whether it is open from the beginning.
    """
    return f"<details{' open' if unfold else ''}><summary>{html.escape(summary)}</summary>{body}</details>"


def lines_folded(summary: str, text: str) -> str:
    """Return a text that is open if it is short."""
    return folded(summary, preformatted(text), unfold=text.count("\n") < MOST_LINES)
