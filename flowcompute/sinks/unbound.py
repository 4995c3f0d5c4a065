"""What a destination promises before it has an input."""

from __future__ import annotations

from flowcompute.spec import FLOAT64, Spec

UNBOUND = Spec(FLOAT64, ())
"""Stands in until `x >> destination` gives the spec of x; nothing reads it before."""
