"""Lowering from regions to kernel IR: one folder for each kernel family, one file for each form."""

from flowcompute.lower.forms import COMPUTED_IN_DOUBLE, lower
from flowcompute.lower.kernel_knobs import (
    GPU_PARTS_PER_UNIT,
    KNOBS_BESIDE_BODIES,
    PARTS_PER_UNIT,
    KernelStyle,
    candidates,
)

__all__ = [
    "COMPUTED_IN_DOUBLE",
    "GPU_PARTS_PER_UNIT",
    "KNOBS_BESIDE_BODIES",
    "PARTS_PER_UNIT",
    "KernelStyle",
    "candidates",
    "lower",
]
