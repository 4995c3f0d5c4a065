"""Which device computes what, and where resident operands lie."""

from flowcompute.schedule.placement.pipeline_stages import (
    PipelineStage,
    batches_ahead,
    made_ahead,
    not_ahead,
    passed_on,
    pipeline_stages_of,
    placements_of,
    steps_ahead,
)
from flowcompute.schedule.placement.placement import only_placement, place_nodes
from flowcompute.schedule.placement.shared_passes import alignment, why_alone, why_dependent
from flowcompute.schedule.placement.weight_residency import (
    HEADROOM,
    LAUNCH_COST_BYTES,
    VECTOR_NUMBERS,
    Residency,
    Residents,
    device_budget,
    kernels_of,
    read_as_they_are,
)

__all__ = [
    "HEADROOM",
    "LAUNCH_COST_BYTES",
    "VECTOR_NUMBERS",
    "PipelineStage",
    "Residency",
    "Residents",
    "alignment",
    "batches_ahead",
    "device_budget",
    "kernels_of",
    "made_ahead",
    "not_ahead",
    "only_placement",
    "passed_on",
    "pipeline_stages_of",
    "place_nodes",
    "placements_of",
    "read_as_they_are",
    "steps_ahead",
    "why_alone",
    "why_dependent",
]
