"""Reasons for decisions of the planner."""

from __future__ import annotations

from flowcompute.imports import dataclass


@dataclass(frozen=True)
class Reason:
    """A reason for a decision of the planner.

    `kind` is "blocks", "cache", "cut", "device", "form", "input", "isolate", "knob", "launch", "recompute" or "train".
    """

    kind: str
    element: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.element}: {self.text}"
