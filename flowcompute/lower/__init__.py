"""From regions to kernel IR: a folder a family of kernels, a file a form."""

from flowcompute.lower.forms import COMPUTED_IN_DOUBLE, FORMS, candidates, lower
from flowcompute.lower.kernel_knobs import (
    GPU_PARTS_PER_UNIT,
    KNOBS_BESIDE_BODIES,
    PARTS_PER_UNIT,
    KernelStyle,
)

__all__ = [
    "COMPUTED_IN_DOUBLE",
    "FORMS",
    "GPU_PARTS_PER_UNIT",
    "KNOBS_BESIDE_BODIES",
    "PARTS_PER_UNIT",
    "KernelStyle",
    "candidates",
    "lower",
]
