"""Row kernels: item reductions with all their phases, and folds of columns."""

from flowcompute.lower.rows.block_merge import lower_merge
from flowcompute.lower.rows.item_reduce import VectorBlocks
from flowcompute.lower.rows.rows_form import lower_rows
from flowcompute.lower.rows.short_rows import lower_short_rows
from flowcompute.lower.rows.subgroup_reduce import Slot, Subgroup, subgroup_size
from flowcompute.lower.rows.subgroup_rows import lower_subgroup_rows
from flowcompute.lower.rows.work_group_rows import lower_group_rows

__all__ = [
    "Slot",
    "Subgroup",
    "VectorBlocks",
    "lower_group_rows",
    "lower_merge",
    "lower_rows",
    "lower_short_rows",
    "lower_subgroup_rows",
    "subgroup_size",
]
