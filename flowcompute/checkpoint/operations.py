"""The table of operations: what stands for each in job data, and how it is made again."""

from __future__ import annotations

from types import ModuleType

from flowcompute.checkpoint import making, making_folds, making_views
from flowcompute.checkpoint.maker import Maker
from flowcompute.elements import along, arithmetic, drawing, linalg, logic, reduce, shape, statistics, transcendental
from flowcompute.elements.compute import ALONG, CAST, Function
from flowcompute.elements.each import EACH
from flowcompute.elements.generate import INDEX, Generator
from flowcompute.elements.nn import activations
from flowcompute.elements.nn.attention import ATTENTION
from flowcompute.elements.nn.state_space import SELECTIVE_SCAN
from flowcompute.elements.nn.windows import WINDOWS
from flowcompute.elements.op import Op
from flowcompute.elements.pad import PAD
from flowcompute.elements.scan import (
    CUMULATIVE_MAX,
    CUMULATIVE_MIN,
    CUMULATIVE_PROD,
    CUMULATIVE_SUM,
    EMA,
    LINEAR_RECURRENCE,
)
from flowcompute.elements.spool import SPOOL


def _functions(*modules: ModuleType) -> list[Op]:
    """The records of all element-wise functions of these tables."""
    return [value.op for module in modules for value in vars(module).values() if isinstance(value, Function)]


_FOLDS = (reduce.SUM_FOLD, reduce.PROD_FOLD, reduce.MIN_FOLD, reduce.MAX_FOLD, reduce.ANY_FOLD, reduce.ALL_FOLD)
_STATISTICS = (statistics.COV, statistics.CORRCOEF, statistics.BINCOUNT, statistics.TOP_K_VALUES)
_ENDS = (statistics.TOP_K_INDICES, statistics.QUANTILE, statistics.FIRST, statistics.LAST)
_SEGMENTS = (statistics.SEGMENT_SUM, statistics.SEGMENT_MEAN, statistics.SEGMENT_MIN, statistics.SEGMENT_MAX)
_ITEMS = (shape.PERMUTE, shape.RESHAPE, shape.BROADCAST, shape.TAKE, shape.STACK, shape.CONCAT, PAD, WINDOWS)

_MAKERS: tuple[tuple[Maker, tuple[Op, ...]], ...] = (
    (
        making.made_elementwise,
        (*dict.fromkeys(_functions(arithmetic, transcendental, logic, activations)), arithmetic.POW),
    ),
    (making.made_where, (logic.WHERE,)),
    (making.made_cast, (CAST,)),
    (making.made_generator, (INDEX, *drawing.UNIFORM.values(), *drawing.NORMAL.values())),
    (making.made_generator, (drawing.SCALED, drawing.SCALED_WIDE)),
    (making.made_along, (ALONG,)),
    (making.made_reduction, (reduce.SUM, reduce.PROD, reduce.MIN, reduce.MAX, reduce.ANY, reduce.ALL)),
    (making.made_reduction, (reduce.ARGMIN, reduce.ARGMAX, reduce.DOT)),
    (making.made_fold, _FOLDS),
    (making.made_fold, (reduce.ARGMIN_FOLD, reduce.ARGMAX_FOLD, reduce.DOT_FOLD, reduce.MEAN_FOLD, reduce.VAR_FOLD)),
    (making.made_each, (EACH,)),
    (making_views.made_along_stream, (along.SELECT, along.SECTION, along.CUT, along.FLATTEN, along.REPEAT)),
    (making_views.made_along_stream, (along.CONCAT, along.WINDOW)),
    (making_views.made_spool, (SPOOL,)),
    (making_views.made_view, _ITEMS),
    (making_views.made_index, (shape.INDEX,)),
    (making.made_product, (linalg.MATMUL,)),
    (making.made_product_fold, (linalg.MATMUL_FOLD,)),
    (making.made_attention, (ATTENTION,)),
    (making_folds.made_statistic, (*_STATISTICS, *_ENDS)),
    (making_folds.made_histogram, (statistics.HISTOGRAM,)),
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
