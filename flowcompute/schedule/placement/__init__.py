"""Device placement of operations, and residency of their operands."""

from flowcompute.schedule.placement.divided_records import Division, divide_records, given_to_parts, part_of
from flowcompute.schedule.placement.pipeline_stages import (
    PipelineStage,
    count_early_steps,
    early_inputs,
    early_outputs,
    extra_batches,
    not_pipelined,
    pipeline_stages_of,
    placements_of,
)
from flowcompute.schedule.placement.placement import place_nodes, single_placement
from flowcompute.schedule.placement.shared_passes import PRODUCTS_STAY, alignment, why_dependent, why_not_shared
from flowcompute.schedule.placement.weight_residency import (
    HEADROOM,
    LAUNCH_COST_BYTES,
    VECTOR_NUMBERS,
    Residency,
    Residents,
    all_stay,
    chosen_operands,
    device_budget,
    direct_inputs,
    kernels_of,
    staying_bytes,
)

__all__ = [
    "HEADROOM",
    "LAUNCH_COST_BYTES",
    "PRODUCTS_STAY",
    "VECTOR_NUMBERS",
    "Division",
    "PipelineStage",
    "Residency",
    "Residents",
    "alignment",
    "all_stay",
    "chosen_operands",
    "count_early_steps",
    "device_budget",
    "direct_inputs",
    "divide_records",
    "early_inputs",
    "early_outputs",
    "extra_batches",
    "given_to_parts",
    "kernels_of",
    "not_pipelined",
    "part_of",
    "pipeline_stages_of",
    "place_nodes",
    "placements_of",
    "single_placement",
    "staying_bytes",
    "why_dependent",
    "why_not_shared",
]
