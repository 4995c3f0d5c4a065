"""The one import of plotly, which is needed for reports alone. Without it the first report says what to install."""

from __future__ import annotations

from flowcompute.errors import RunError

try:
    from plotly.offline import get_plotlyjs
except ImportError as missing:
    _problem: ImportError | None = missing
else:
    _problem = None


def plotly_script() -> str:
    """plotly.js, whole, so that a page that holds it needs no network.

    Raises:
        RunError: where plotly is not installed.
    """
    if _problem is not None:
        raise RunError(
            "cannot make a report without plotly, which is not installed",
            element="report",
            got=str(_problem),
            hint='"pip install flowcompute[report]"',
        ) from _problem
    return str(get_plotlyjs())
