"""Explanations of plans: text, pictures, applied knobs, rooflines and expected times."""

from flowcompute.schedule.explain.applied_knobs import (
    batch_sizes,
    complete_strategy,
    is_read_in_parts,
    not_applied,
    variant,
)
from flowcompute.schedule.explain.expected_times import Expectation, expectations, missed
from flowcompute.schedule.explain.explain_plan import describe_run, plan_svg
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.explain.roofline_table import limits_of, rooflines

__all__ = [
    "Expectation",
    "Plan",
    "batch_sizes",
    "complete_strategy",
    "describe_run",
    "expectations",
    "is_read_in_parts",
    "limits_of",
    "missed",
    "not_applied",
    "plan_svg",
    "rooflines",
    "variant",
]
