"""Calls of a user's Python function on arrays, checked against what was declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements import HostFunction
from flowcompute.elements.policies import error_text
from flowcompute.errors import RunError
from flowcompute.graph import Node


def call_host(node: Node, arguments: Sequence[np.ndarray], records: tuple[int, int] | None) -> np.ndarray:
    """Call a host function; gives its result, C-contiguous.

    Args:
        node: of the function.
        arguments: for each input; given as they are, so `read_only` ones.
        records: which records the streams among them are; None for a resident result.

    Raises:
        RunError: if the function raises, which is the cause, or returns another shape or dtype than declared.
    """
    element = node.element
    assert isinstance(element, HostFunction)
    where: dict[str, Any] = {"element": node.name, "site": element.site, "records": records}
    try:
        result = np.asarray(element.function(*arguments))
    except Exception as error:
        raise RunError(f"the function failed: {type(error).__name__}: {error_text(error)}", **where) from error
    expected = node.spec.shape if records is None else (records[1] - records[0], *node.spec.shape)
    if result.shape != expected:
        raise RunError(
            "cannot use what the function returned: another shape was declared",
            **where,
            expected=str(expected),
            got=str(result.shape),
            hint="declare it: fc.host(fn, x, shape=item_shape)",
        )
    if result.dtype != node.spec.dtype:
        raise RunError(
            "cannot use what the function returned: another dtype was declared",
            **where,
            expected=node.spec.dtype.name,
            got=result.dtype.name,
            hint="declare it: fc.host(fn, x, dtype=...)",
        )
    return np.asarray(result, order="C")


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to."""
    view = array.view()
    view.setflags(write=False)
    return view
