"""How operations are made again."""

from flowcompute.checkpoint.job.makers.maker import Kept
from flowcompute.checkpoint.job.makers.operations import OPERATIONS, op_tag

__all__ = ["OPERATIONS", "Kept", "op_tag"]
