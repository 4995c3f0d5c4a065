"""Each class of elements with the functions that describe and rebuild it."""

from flowcompute.checkpoint.job.parts.kept_sinks import SINKS
from flowcompute.checkpoint.job.parts.part import Describing, KeptNode, Part, Rebuilding
from flowcompute.checkpoint.job.parts.tags import TAGS, part_of

__all__ = ["SINKS", "TAGS", "Describing", "KeptNode", "Part", "Rebuilding", "part_of"]
