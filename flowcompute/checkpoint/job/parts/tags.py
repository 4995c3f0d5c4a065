"""The one table of tags: every class of elements that a job may be made of, and how it is kept."""

from __future__ import annotations

from flowcompute.checkpoint.job.fields import refuse
from flowcompute.checkpoint.job.parts.computes import COMPUTES, OPS
from flowcompute.checkpoint.job.parts.kept_sinks import SINKS
from flowcompute.checkpoint.job.parts.kept_sources import SOURCES
from flowcompute.checkpoint.job.parts.kept_training import TRAININGS
from flowcompute.checkpoint.job.parts.part import Part
from flowcompute.elements import Compute, Element

PARTS: dict[type[Element], Part] = {**SOURCES, **COMPUTES, **SINKS, **TRAININGS}

TAGS: dict[str, Part] = {part.tag: part for part in (*PARTS.values(), *OPS.values())}


def part_of(element: Element) -> Part:
    """Return the part that describes and rebuilds elements of this class.

    Raises:
        CheckpointError: if its class is not known here.
    """
    part = PARTS.get(type(element))
    if type(element) is Compute:
        part = OPS.get(type(element.op), part)
    if part is None:
        refuse("cannot keep elements of this class in a checkpoint", got=type(element).__name__)
    return part
