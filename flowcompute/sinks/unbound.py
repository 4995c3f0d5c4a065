"""Spec of a destination that has no input yet."""

from __future__ import annotations

from flowcompute.spec import FLOAT64, Spec

UNBOUND = Spec(FLOAT64, ())
"""Placeholder until `x >> destination` gives the spec of x. Nothing reads it before."""
