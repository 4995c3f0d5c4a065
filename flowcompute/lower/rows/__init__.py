"""Row kernels: item reductions with all their phases, and folds of columns."""

from flowcompute.lower.rows.block_merge import lower_merge
from flowcompute.lower.rows.item_reduce import VectorBlocks
from flowcompute.lower.rows.product_rows import ProductRows
from flowcompute.lower.rows.row_shape import RowShape
from flowcompute.lower.rows.row_sweep import RowSweep
from flowcompute.lower.rows.rows_form import COLUMNS, ROWS
from flowcompute.lower.rows.short_rows import SHORT_ROWS
from flowcompute.lower.rows.subgroup_reduce import Slot, Subgroup, subgroup_size
from flowcompute.lower.rows.subgroup_rows import SUBGROUP_ROWS
from flowcompute.lower.rows.work_group_rows import WORK_GROUP_ROWS, WorkGroupSweep

__all__ = [
    "COLUMNS",
    "ROWS",
    "SHORT_ROWS",
    "SUBGROUP_ROWS",
    "WORK_GROUP_ROWS",
    "ProductRows",
    "RowShape",
    "RowSweep",
    "Slot",
    "Subgroup",
    "VectorBlocks",
    "WorkGroupSweep",
    "lower_merge",
    "subgroup_size",
]
