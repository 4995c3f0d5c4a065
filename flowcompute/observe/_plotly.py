"""The one import of plotly, which is needed for reports alone. Without it the first report says what to install."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowcompute.errors import RunError
from flowcompute.imports import LateModule, import_problem

if TYPE_CHECKING:
    from plotly import offline
else:
    offline = LateModule("plotly.offline")


def plotly_script() -> str:
    """plotly.js, whole, so that a page that holds it needs no network.

    Raises:
        RunError: where plotly is not installed.
    """
    problem = import_problem("plotly.offline")
    if problem is not None:
        raise RunError(
            "cannot make a report without plotly, which is not installed",
            element="report",
            got=str(problem),
            hint='"pip install flowcompute[report]"',
        ) from problem
    return str(offline.get_plotlyjs())
