"""Conditions under which several devices share the batches of a pass, and the alignment of these batches."""

from __future__ import annotations

import math

from flowcompute.elements import HostFunction, Kind
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import RegionStep, Step, device_folds

PRODUCTS_STAY = "folds of products stay there, and bringing their records to it takes longer than it saves"
"""Why the first of several discrete devices computes a pass alone: decision 0201 has what was measured."""


def why_not_shared(one_pass: Pass, *, by_hand: bool) -> str | None:
    """Return why one device computes all batches of a pass; None if several can share them.

    Folds do not prevent sharing, since the results of their blocks are merged in record order.
    """
    why, blocks, items = why_dependent(one_pass, by_hand=by_hand), alignment(one_pass), one_pass.batch_items
    whole = one_pass.length is not None and items >= one_pass.length
    if why is None and items % blocks and not whole:
        return f"batches of {items} records would have to be cut at multiples of {blocks}, where its folds' blocks end"
    return why


def why_dependent(one_pass: Pass, *, by_hand: bool) -> str | None:
    """Return why batches of a pass depend on earlier batches, or on their device; None if they are independent."""
    if device_folds(one_pass.steps):
        return PRODUCTS_STAY
    roots = [clock for clock in one_pass.clocks if clock.is_root]
    if by_hand:
        return "flows are fed by hand"
    if len(roots) != 1:
        return "results decide which source is read next" if roots else "nothing is read"
    return next(filter(None, map(why_in_order, roots[0].steps)), None)


def why_in_order(step: Step) -> str | None:
    """Return why a step must process the records in order; None if it has no state."""
    if isinstance(step, RegionStep):
        carries = (
            step.region.anchor is not None
            and step.kernel is not None
            and step.kernel.work in ("scan", "walk", "attend")
        )
    elif isinstance(step.node.element, HostFunction):
        return f"{step.name} calls a function of yours, in the order of the records"
    else:
        carries = step.node.kind is Kind.SCAN
    return f"{step.name} carries a value from batch to batch" if carries else None


def alignment(one_pass: Pass, steps: int | None = None) -> int:
    """Return the number of records whose multiples batches of the root clock may end at.

    No block of a fold is then open between two batches.

    Args:
        one_pass: the pass.
        steps: the number of leading steps of that clock to consider; all by default.
    """
    found = 1
    for clock in one_pass.clocks:
        if clock.is_root:
            mine = (step for step in clock.steps[:steps] if isinstance(step, RegionStep))
            kernels = [step.kernel for step in mine if step.kernel is not None]
            blocks = [kernel.block for kernel in kernels if kernel.work in ("records", "columns")]
            found = math.lcm(found, clock.granule, *blocks)
    return found
