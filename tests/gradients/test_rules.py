"""Each operation says what its gradient is, or that and why it has none."""

from __future__ import annotations

import flowcompute as fc
from flowcompute.elements import RECORDS
from flowcompute.gradients.rules import RULES


def test_each_operation_has_a_rule() -> None:
    assert fc.grad is not None
    assert sorted(set(RECORDS) - set(RULES)) == []


def test_no_rule_is_for_an_operation_that_is_gone() -> None:
    """Some stand in graphs that users compose, and in no kept job by their own record; others in users' functions."""
    composed = {
        "elementwise.parameter",
        "elementwise.recompute",
        "elementwise.stop_gradient",
        "host.host",
        "select.try_host",
    }
    composed |= {"scan.kernel_scan", "scan.scan"}
    inside = {"elementwise.fmax", "elementwise.fmin", "elementwise.native_exp2", "elementwise.quiet_nan"}
    assert set(RULES) - set(RECORDS) == composed | inside
