"""The public names, which `flowcompute` gives by `__getattr__`: loading all takes as long as loading NumPy."""

import importlib
from typing import TYPE_CHECKING

from numpy import e, inf, nan, newaxis, pi

import flowcompute.elements.arguments
from flowcompute import array_api
from flowcompute.elements import (
    Compute,
    Constant,
    Destination,
    Element,
    Matrix,
    Number,
    Source,
    Vector,
    fft,
    host,
    linalg,
    nn,
    pinned,
    random,
    spool,
)
from flowcompute.elements import Constant as constant  # noqa: N813 - the function that makes one
from flowcompute.elements.axes import (
    broadcast_arrays,
    broadcast_to,
    concat,
    convolve,
    cut,
    diagonal,
    diff,
    expand_dims,
    flatten,
    flip,
    matrix_transpose,
    moveaxis,
    pad,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    tile,
    trace,
    tril,
    triu,
    unstack,
    window,
)
from flowcompute.elements.creation import (
    Table,
    can_cast,
    conj,
    empty,
    empty_like,
    eye,
    finfo,
    full,
    full_like,
    iinfo,
    imag,
    isdtype,
    linspace,
    ones,
    ones_like,
    parameter,
    real,
    recompute,
    result_type,
    stop_gradient,
    table,
    zeros,
    zeros_like,
)
from flowcompute.elements.functions import kernel, opencl
from flowcompute.elements.generated import arange, range
from flowcompute.elements.math import (
    abs,
    acos,
    acosh,
    add,
    all,
    any,
    argmax,
    argmin,
    asin,
    asinh,
    astype,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmod,
    greater,
    greater_equal,
    hypot,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    prod,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    std,
    subtract,
    sum,
    tan,
    tanh,
    trunc,
    trunc_divide,
    var,
    vecdot,
    view,
    where,
)
from flowcompute.elements.products import cross, einsum, outer, tensordot
from flowcompute.elements.quantized import dequantize
from flowcompute.elements.search import (
    argsort,
    gather_nd,
    isin,
    nonzero,
    scatter_elements,
    scatter_nd,
    searchsorted,
    sort,
    take_along_axis,
)
from flowcompute.elements.streams import (
    bincount,
    corrcoef,
    count_nonzero,
    cov,
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
    describe,
    ema,
    first,
    histogram,
    last,
    linear_recurrence,
    median,
    nanmax,
    nanmean,
    nanmin,
    nanstd,
    nansum,
    nanvar,
    percentile,
    quantile,
    scan,
    segment_max,
    segment_mean,
    segment_min,
    segment_sum,
    shuffle,
    top_k,
    unique_counts,
    unique_values,
)
from flowcompute.errors import (
    CheckpointError,
    CheckpointWarning,
    DestinationError,
    DestinationWarning,
    DeviceError,
    DeviceFullError,
    DeviceWarning,
    EventLoopWarning,
    FlowError,
    KernelError,
    MetricsWarning,
    PlanError,
    RunError,
    SourceError,
    SpecError,
    SpecIndexError,
    SpecTypeError,
)
from flowcompute.model_files import NamedWeights, weights
from flowcompute.sinks import callback, discard, save, to_array
from flowcompute.sources import feed, iterate, open, source
from flowcompute.strategy import Strategy
from flowcompute.version import __version__

if TYPE_CHECKING:
    from flowcompute import models, onnx, train
    from flowcompute.flow import aresolve, arun, open_flow, plan, resolve, run, start
    from flowcompute.gradients import grad
    from flowcompute.runtime.run import Run
    from flowcompute.schedule.explain import Plan
    from flowcompute.thawing import Frozen, thaw

_LATE = {
    "models": "flowcompute.models",
    "grad": "flowcompute.gradients",
    "onnx": "flowcompute.onnx",
    "train": "flowcompute.train",
    **dict.fromkeys(("aresolve", "arun", "open_flow", "plan", "resolve", "run", "start"), "flowcompute.flow"),
    "Run": "flowcompute.runtime.run",
    "Plan": "flowcompute.schedule.explain",
    "Frozen": "flowcompute.thawing",
    "thaw": "flowcompute.thawing",
}
"""Names that are loaded when they are first asked for: composing needs no compiler, no driver and no event loop."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        rooms = {"fc": __all__} | {
            f"fc.{one.__name__.split('.')[-1]}": one.__all__ for one in (nn, linalg, fft, random)
        }
        raise flowcompute.elements.arguments.no_such_name(name, rooms)
    module = importlib.import_module(_LATE[name])
    globals()[name] = found = getattr(module, name, module)
    return found


__all__ = [
    "CheckpointError", "CheckpointWarning", "Compute", "Constant", "Destination", "DestinationError",
    "DestinationWarning", "DeviceError", "DeviceFullError", "DeviceWarning", "Element", "EventLoopWarning", "FlowError",
    "Frozen", "KernelError", "Matrix", "MetricsWarning", "NamedWeights", "Number", "Plan", "PlanError", "Run",
    "RunError", "Source", "SourceError", "SpecError", "SpecIndexError", "SpecTypeError", "Strategy", "Table", "Vector",
    "__version__", "abs", "acos", "acosh", "add", "all", "any", "arange", "aresolve", "argmax", "argmin", "argsort",
    "array_api", "arun", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bincount", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_arrays",
    "broadcast_to", "callback", "can_cast", "ceil", "clip", "concat", "conj", "constant", "convolve", "copysign",
    "corrcoef", "cos", "cosh", "count_nonzero", "cov", "cross", "cumulative_max", "cumulative_min", "cumulative_prod",
    "cumulative_sum", "cut", "dequantize", "describe", "diagonal", "diff", "discard", "divide", "e", "einsum", "ema",
    "empty", "empty_like", "equal", "exp", "exp2", "expand_dims", "expm1", "eye", "feed", "fft", "finfo", "first",
    "flatten", "flip", "floor", "floor_divide", "fmod", "full", "full_like", "gather_nd", "grad", "greater",
    "greater_equal", "histogram", "host", "hypot", "iinfo", "imag", "inf", "isdtype", "isfinite", "isin", "isinf",
    "isnan", "iterate", "kernel", "last", "less", "less_equal", "linalg", "linear_recurrence", "linspace", "log",
    "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul",
    "matrix_transpose", "max", "maximum", "mean", "median", "min", "minimum", "models", "moveaxis", "multiply", "nan",
    "nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar", "negative", "newaxis", "nextafter", "nn", "nonzero",
    "not_equal", "ones", "ones_like", "onnx", "open", "open_flow", "opencl", "outer", "pad", "parameter", "percentile",
    "permute_dims", "pi", "pinned", "plan", "positive", "pow", "prod", "quantile", "random", "range", "real",
    "reciprocal", "recompute", "remainder", "repeat", "reshape", "resolve", "result_type", "roll", "round", "run",
    "save", "scan", "scatter_elements", "scatter_nd", "searchsorted", "segment_max", "segment_mean", "segment_min",
    "segment_sum", "shuffle", "sign", "signbit", "sin", "sinh", "sort", "source", "spool", "sqrt", "square", "squeeze",
    "stack", "start", "std", "stop_gradient", "subtract", "sum", "table", "take", "take_along_axis", "tan", "tanh",
    "tensordot", "thaw", "tile", "to_array", "top_k", "trace", "train", "tril", "triu", "trunc", "trunc_divide",
    "unique_counts", "unique_values", "unstack", "var", "vecdot", "view", "weights", "where", "window", "zeros",
    "zeros_like",
]  # fmt: skip
