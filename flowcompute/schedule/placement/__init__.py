"""Which device computes what, and where resident operands lie."""

from flowcompute.schedule.placement.pipeline_stages import (
    PipelineStage,
    batches_ahead,
    legs_of,
    made_ahead,
    not_ahead,
    passed_on,
    seats_of,
    steps_ahead,
)
from flowcompute.schedule.placement.placement import only_seat, place_nodes
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
    "legs_of",
    "made_ahead",
    "not_ahead",
    "only_seat",
    "passed_on",
    "place_nodes",
    "read_as_they_are",
    "seats_of",
    "steps_ahead",
    "why_alone",
    "why_dependent",
]
