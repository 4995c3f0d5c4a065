"""The table of operations: what stands for each in job data, and how it is made again."""

from __future__ import annotations

from flowcompute.checkpoint.job.makers import element_makers as making
from flowcompute.checkpoint.job.makers import fold_makers as making_folds
from flowcompute.checkpoint.job.makers import view_makers as making_views
from flowcompute.checkpoint.job.makers.maker import Maker
from flowcompute.elements import ALONG, CAST, SPOOL, Op
from flowcompute.elements.axes import (
    BROADCAST,
    CONCAT,
    CONCAT_STREAMS,
    CUT,
    FLATTEN,
    PAD,
    PERMUTE,
    REPEAT,
    RESHAPE,
    SECTION,
    SELECT,
    STACK,
    TAKE,
    WINDOW,
)
from flowcompute.elements.axes import (
    INDEX as TAKEN,
)
from flowcompute.elements.generated import INDEX, NORMAL, SCALED, SCALED_WIDE, UNIFORM, Generator
from flowcompute.elements.math import (
    ALL,
    ALL_FOLD,
    ANY,
    ANY_FOLD,
    ARGMAX,
    ARGMAX_FOLD,
    ARGMIN,
    ARGMIN_FOLD,
    DOT,
    DOT_FOLD,
    EACH,
    ELEMENTWISE,
    MATMUL,
    MATMUL_FOLD,
    MAX,
    MAX_FOLD,
    MEAN_FOLD,
    MIN,
    MIN_FOLD,
    POW,
    PROD,
    PROD_FOLD,
    SUM,
    SUM_FOLD,
    VAR_FOLD,
    WHERE,
)
from flowcompute.elements.nn import ACTIVATIONS, ATTENTION, SELECTIVE_SCAN, WINDOWS
from flowcompute.elements.streams import (
    BINCOUNT,
    CORRCOEF,
    COV,
    CUMULATIVE_MAX,
    CUMULATIVE_MIN,
    CUMULATIVE_PROD,
    CUMULATIVE_SUM,
    EMA,
    FIRST,
    HISTOGRAM,
    LAST,
    LINEAR_RECURRENCE,
    QUANTILE,
    SEGMENT_MAX,
    SEGMENT_MEAN,
    SEGMENT_MIN,
    SEGMENT_SUM,
    TOP_K_INDICES,
    TOP_K_VALUES,
)

_FOLDS = (SUM_FOLD, PROD_FOLD, MIN_FOLD, MAX_FOLD, ANY_FOLD, ALL_FOLD)
_STATISTICS = (COV, CORRCOEF, BINCOUNT, TOP_K_VALUES)
_ENDS = (TOP_K_INDICES, QUANTILE, FIRST, LAST)
_SEGMENTS = (SEGMENT_SUM, SEGMENT_MEAN, SEGMENT_MIN, SEGMENT_MAX)
_ITEMS = (PERMUTE, RESHAPE, BROADCAST, TAKE, STACK, CONCAT, PAD, WINDOWS)

_MAKERS: tuple[tuple[Maker, tuple[Op, ...]], ...] = (
    (
        making.made_elementwise,
        (*(function.op for function in (*ELEMENTWISE.values(), *ACTIVATIONS)), POW),
    ),
    (making.made_where, (WHERE,)),
    (making.made_cast, (CAST,)),
    (making.made_generator, (INDEX, *UNIFORM.values(), *NORMAL.values())),
    (making.made_generator, (SCALED, SCALED_WIDE)),
    (making.made_along, (ALONG,)),
    (making.made_reduction, (SUM, PROD, MIN, MAX, ANY, ALL)),
    (making.made_reduction, (ARGMIN, ARGMAX, DOT)),
    (making.made_fold, _FOLDS),
    (making.made_fold, (ARGMIN_FOLD, ARGMAX_FOLD, DOT_FOLD, MEAN_FOLD, VAR_FOLD)),
    (making.made_each, (EACH,)),
    (making_views.made_along_stream, (SELECT, SECTION, CUT, FLATTEN, REPEAT)),
    (making_views.made_along_stream, (CONCAT_STREAMS, WINDOW)),
    (making_views.made_spool, (SPOOL,)),
    (making_views.made_view, _ITEMS),
    (making_views.made_index, (TAKEN,)),
    (making.made_product, (MATMUL,)),
    (making.made_product_fold, (MATMUL_FOLD,)),
    (making.made_attention, (ATTENTION,)),
    (making_folds.made_statistic, (*_STATISTICS, *_ENDS)),
    (making_folds.made_histogram, (HISTOGRAM,)),
    (making_folds.made_segments, _SEGMENTS),
    (making_folds.made_scan, (CUMULATIVE_SUM, CUMULATIVE_PROD, CUMULATIVE_MAX, CUMULATIVE_MIN, EMA)),
    (making_folds.made_recurrence, (LINEAR_RECURRENCE,)),
    (making_folds.made_state_space, (SELECTIVE_SCAN,)),
)


def op_tag(op: Op) -> str:
    """What stands for an operation: kind and name, of numbers that are drawn also their bits."""
    bits = f".{op.bits}" if isinstance(op, Generator) and op.bits else ""
    return f"{op.kind.value}.{op.name}{bits}"


OPERATIONS: dict[str, tuple[Op, Maker]] = {op_tag(op): (op, maker) for maker, ops in _MAKERS for op in ops}
"""Every operation of the tables that users' graphs are made of, by tag."""
