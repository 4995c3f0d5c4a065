"""Calls on arrays of what the host computes: functions of users, operations of LAPACK, and packing of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements import HostFunction
from flowcompute.elements.policies import error_text
from flowcompute.errors import RunError
from flowcompute.graph import Node
from flowcompute.ir import SLICE_NUMBERS, canonical_nan


def call_host(node: Node, arguments: Sequence[np.ndarray], records: tuple[int, int] | None) -> np.ndarray:
    """Call what the host computes; gives its result, C-contiguous.

    Args:
        node: of the function or operation.
        arguments: for each input; given as they are, so `read_only` ones.
        records: which records the streams among them are; None for a resident result.

    Raises:
        RunError: if the function raises, which is the cause, or returns another shape or dtype than declared; if
            LAPACK refuses a matrix.
    """
    element = node.element
    if not isinstance(element, HostFunction):
        return _call_record(node, arguments, records)
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


def _call_record(node: Node, arguments: Sequence[np.ndarray], records: tuple[int, int] | None) -> np.ndarray:
    """Call what an operation's record means, which is NumPy's LAPACK, with a bounded number of records at a time."""
    if records is None:
        return _computed(node, arguments, None)
    made = np.empty((records[1] - records[0], *node.spec.shape), node.spec.dtype)
    streamed = [operand.spec.is_stream for operand in node.element.inputs]
    numbers = max(1, sum(operand.spec.item_numbers for operand in node.element.inputs), node.spec.item_numbers)
    step = max(1, SLICE_NUMBERS // numbers)
    for start in range(0, len(made), step):
        part = slice(start, start + step)
        own = [one[part] if along else one for one, along in zip(arguments, streamed, strict=True)]
        made[part] = _computed(node, own, records[0] + start)
    return made


def _computed(node: Node, arguments: Sequence[np.ndarray], first: int | None) -> np.ndarray:
    """Return the results of records from `first` on, or of resident operands where it is None.

    Raises:
        RunError: if LAPACK refuses a matrix, naming the record.
    """
    assert node.op is not None
    try:
        with np.errstate(all="ignore"):
            result = node.op.numpy(*arguments, **node.attrs)
    except np.linalg.LinAlgError as error:
        raise RunError(
            f"cannot compute with this matrix: {error}",
            element=node.name,
            site=node.element.site,
            records=None if first is None else _refused(node, arguments, first),
            hint="fc.linalg.pinv takes singular matrices" if "ingular" in str(error) else None,
        ) from error
    # What is computed may be an argument itself, or a view of one.
    own = isinstance(result, np.ndarray) and result.flags.owndata and not any(result is one for one in arguments)
    return canonical_nan(np.array(result, node.spec.dtype, order="C", copy=None if own else True))


def _refused(node: Node, arguments: Sequence[np.ndarray], first: int) -> tuple[int, int] | None:
    """Return the first record that LAPACK refuses."""
    assert node.op is not None
    streamed = [operand.spec.is_stream for operand in node.element.inputs]
    count = max(len(one) for one, along in zip(arguments, streamed, strict=True) if along)
    for place in range(count):
        own = [one[place : place + 1] if along else one for one, along in zip(arguments, streamed, strict=True)]
        try:
            with np.errstate(all="ignore"):
                node.op.numpy(*own, **node.attrs)
        except np.linalg.LinAlgError:
            return first + place, first + place + 1
    return None


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to."""
    view = array.view()
    view.setflags(write=False)
    return view
