"""A sound call of every public function, and values that nobody should give to any of them."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import flowcompute as fc
from flowcompute.elements import Function


class Call(NamedTuple):
    """A sound call.

    Attributes:
        name: for people.
        function: what is called.
        arguments: by name where Python knows one, else by place.
    """

    name: str
    function: Callable[..., Any]
    arguments: dict[str | int, Any]

    def at(self, arguments: dict[str | int, Any]) -> Any:
        """Call it with these arguments."""
        places = [arguments[key] for key in arguments if isinstance(key, int)]
        return self.function(*places, **{key: value for key, value in arguments.items() if isinstance(key, str)})


def endless() -> Iterator[int]:
    while True:
        yield 1


def unknown() -> Any:
    return fc.iterate([np.ones(3, "f4")], shape=(), dtype="float32")


NUMBERS = fc.source(np.arange(12.0))
ROWS = fc.source(np.arange(24, dtype="f4").reshape(6, 4))
WHOLE = fc.source(np.arange(12) % 3)
SQUARES = fc.source(np.ones((2, 3, 4), "f4"))
IMAGES = fc.source(np.ones((2, 4, 6, 6), "f4"))
KNOWN = fc.constant(np.arange(12.0).reshape(3, 4))
SCALAR = fc.constant(2.0)
TOTAL = ROWS.sum()
GRAM = fc.constant(np.eye(3) + 1)

HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 1.5, -0.0, float("nan"), float("inf"), -float("inf"), 1j,
    2**31, 2**63, 2**64, -(2**63), 10**12, 10**30, 10**400, -(10**400), 10**5000, 1e308,
    "", "a", "float32", "nonsense", "9" * 400, "\0", b"bytes", (), [], {}, set(), (0, 0), (1, 2), (1, -1), [1, [2, 3]],
    (10**30,), ("a", 1), (None, None), [None], ((((1,),),),), slice(None), slice("a", None, 10**30), Ellipsis, ...,
    np.int64(1), np.float32(2), np.nan, np.array(3), np.array([]), np.array(["a"]), np.array([1j]), np.array([None]),
    np.ones((2, 2)), np.datetime64("2020"), np.dtype("f4"), np.dtype([("a", "f4")]), int, float, object, str,
    object(), lambda: None, print, operator.index, type("Odd", (), {}), iter([1]), NotImplemented,
    NUMBERS, ROWS, SQUARES, KNOWN, SCALAR, WHOLE, ROWS > 1, NUMBERS > 1, ROWS.T, fc.save("never.npy"), unknown(),
    fc.constant(np.zeros((0, 3))), fc.source(np.zeros((0, 3))), range(3), range(10**12), {1: 2}, {"a": NUMBERS},
    fc.constant(True), fc.constant(np.int8(1)), 10**9,
]  # fmt: skip
"""Values of every kind: legal here and hostile there."""

HOSTILE_LAZY: list[Callable[[], Any]] = [endless, lambda: iter([NUMBERS, ROWS]), lambda: (one for one in "ab")]
"""Those that can be used once only."""

_LOW_LEVEL = {
    "Compute", "Destination", "Element", "Source", "Frozen", "Plan", "Run", "Strategy", "__version__", "kernel",
    "NamedWeights", "Table", "fft", "linalg", "opencl", "nn", "random",
}  # fmt: skip
"""Names that are no functions that users compose with, and the makers of kernels, which read users' texts."""

_VERBS = {"plan", "run", "start", "resolve", "open_flow", "thaw"}


def _plus(a: Any, b: Any) -> Any:
    return a + b


GOOD: dict[str, dict[str | int, Any]] = {
    "table": {"columns": {"a": ROWS, "b": ROWS}},
    "Constant": {"value": [1, 2], "dtype": "f4", "name": "kept"},
    "constant": {"value": [1, 2], "dtype": "f4", "name": "kept"},
    "Number": {"dtype": "f4"},
    "Vector": {"n": 3, "dtype": "f4"},
    "Matrix": {"m": 3, "n": 2, "dtype": "f4"},
    "all": {"x": ROWS, "axis": 0, "keepdims": False},
    "any": {"x": ROWS, "axis": 0, "keepdims": False},
    "argmax": {"x": ROWS, "axis": 0, "keepdims": False},
    "argmin": {"x": ROWS, "axis": 0, "keepdims": False},
    "astype": {"x": ROWS, "dtype": "f8"},
    "view": {"x": ROWS, "dtype": "u4"},
    "bincount": {"x": WHOLE, "length": 3},
    "bitwise_and": {0: WHOLE, 1: 1},
    "bitwise_invert": {0: WHOLE},
    "bitwise_or": {0: WHOLE, 1: 1},
    "bitwise_xor": {0: WHOLE, 1: 1},
    "trunc_divide": {0: WHOLE, 1: 2},
    "bitwise_left_shift": {0: WHOLE, 1: 1},
    "bitwise_right_shift": {0: WHOLE, 1: 1},
    "broadcast_to": {"x": ROWS[:, None], "shape": (6, 2, 4)},
    "callback": {"function": print, "name": "call"},
    "clip": {"x": ROWS, "min": 0, "max": 3},
    "concat": {"values": [ROWS, ROWS], "axis": 1},
    "convolve": {"x": NUMBERS, "taps": [1.0, 2.0], "mode": "same"},
    "corrcoef": {"x": ROWS},
    "count_nonzero": {"x": ROWS, "axis": 0, "keepdims": False},
    "cov": {"x": ROWS, "correction": 1},
    "cumulative_max": {"x": ROWS, "axis": 0},
    "cumulative_min": {"x": ROWS, "axis": 0},
    "cumulative_prod": {"x": ROWS, "axis": 1, "dtype": "f8", "exclusive": True, "reverse": True},
    "cumulative_sum": {"x": ROWS, "axis": 1, "dtype": "f8", "exclusive": True, "method": "blelloch", "reverse": True},
    "cut": {"x": NUMBERS, "every": 4, "tail": "pad", "fill": 1},
    "dequantize": {"raw": np.zeros((2, 36), np.uint8), "type": "Q4_0"},
    "diff": {"x": ROWS, "n": 1, "axis": 1, "prepend": 0, "append": None},
    "discard": {},
    "ema": {"x": NUMBERS, "alpha": 0.5},
    "expand_dims": {"x": ROWS, "axis": 1},
    "feed": {"shape": (3,), "dtype": "f4", "name": "fed"},
    "first": {"x": ROWS},
    "flatten": {"x": ROWS},
    "flip": {"x": ROWS, "axis": 1},
    "histogram": {"x": NUMBERS, "bins": 4, "range": (0, 4)},
    "host": {0: np.abs, 1: ROWS, "dtype": "f4", "shape": (4,), "on_error": "raise", "dead_letter": None,
             "vjp": None},
    "iterate": {
        "iterable": [np.ones(3)], "shape": (), "dtype": "f8", "items": False, "on_error": "raise", "dead_letter": None,
    },
    "last": {"x": ROWS},
    "linear_recurrence": {"a": ROWS, "b": ROWS, "axis": 0},
    "matmul": {"x1": ROWS, "x2": np.ones((4, 2), "f4"), "dtype": "f4"},
    "max": {"x": ROWS, "axis": 0, "keepdims": False, "initial": 3},
    "mean": {"x": ROWS, "axis": 0, "keepdims": False},
    "min": {"x": ROWS, "axis": 0, "keepdims": False, "initial": 3},
    "moveaxis": {"x": SQUARES, "source": 1, "destination": 2},
    "pad": {"x": ROWS, "pad_width": 1, "mode": "constant", "constant_values": 0},
    "permute_dims": {"x": SQUARES, "axes": (0, 2, 1)},
    "pinned": {"array": np.ones(3)},
    "pow": {"x1": ROWS, "x2": 2},
    "prod": {"x": ROWS, "axis": 0, "dtype": "f8", "keepdims": False},
    "describe": {"x": ROWS},
    "quantile": {"x": ROWS, "q": 0.5, "axis": 1, "keepdims": True},
    "range": {"start": 0, "stop": 5, "step": 1, "dtype": "i4"},
    "repeat": {"x": ROWS, "repeats": 2, "axis": 1},
    "reshape": {"x": ROWS, "shape": (-1, 2, 2)},
    "scan": {0: _plus, 1: NUMBERS, "init": 0.0, "axis": 0, "associative": False},
    "segment_max": {"x": NUMBERS, "keys": WHOLE, "num_segments": 3},
    "segment_mean": {"x": NUMBERS, "keys": WHOLE, "num_segments": 3},
    "segment_min": {"x": NUMBERS, "keys": WHOLE, "num_segments": 3},
    "segment_sum": {"x": NUMBERS, "keys": WHOLE, "num_segments": 3},
    "shuffle": {0: ROWS, "seed": 1, "epoch": 0, "block": 2, "window": 4},
    "source": {"array": np.ones(3), "name": "given"},
    "open": {"path": "nowhere.bin", "format": "raw", "dtype": "f4", "shape": (2,), "offset": 0},
    "save": {"path": "never.npy", "format": "npy", "name": "kept"},
    "spool": {"x": NUMBERS, "folder": None, "limit": None},
    "squeeze": {"x": ROWS[:, :1], "axis": 1},
    "stack": {"values": [ROWS, ROWS], "axis": 1},
    "argsort": {"x": ROWS, "axis": 1, "descending": True, "stable": True},
    "isin": {"x1": ROWS, "x2": [1.0, 2.0], "invert": True},
    "nonzero": {"x": ROWS},
    "searchsorted": {"x1": [1.0, 2.0, 3.0], "x2": ROWS, "side": "right", "sorter": [0, 1, 2]},
    "sort": {"x": ROWS, "axis": 1, "descending": True, "stable": True},
    "broadcast_arrays": {0: ROWS, 1: KNOWN[:1]},
    "gather_nd": {"x": ROWS, "indices": np.zeros((6, 2, 1), int), "batch_dims": 1},
    "scatter_elements": {
        "x": ROWS, "indices": np.zeros((6, 2), int), "updates": np.ones((6, 2)), "axis": 1, "reduction": "add",
    },
    "scatter_nd": {
        "x": ROWS, "indices": np.zeros((6, 2, 1), int), "updates": np.ones((6, 2)), "reduction": "max", "batch_dims": 1,
    },
    "take_along_axis": {"x": ROWS, "indices": np.zeros((6, 2), int), "axis": 1},
    "cross": {"x1": ROWS[:, :3], "x2": ROWS[:, 1:], "axis": 1},
    "einsum": {0: "ni,ij->nj", 1: ROWS, 2: np.ones((4, 2), "f4")},
    "outer": {"x1": NUMBERS, "x2": np.ones(3)},
    "tensordot": {"x1": ROWS, "x2": np.ones((4, 2), "f4"), "axes": 1},
    "diagonal": {"x": SQUARES, "offset": 1, "axis1": 1, "axis2": 2},
    "roll": {"x": ROWS, "shift": 2, "axis": 1},
    "tile": {"x": ROWS, "reps": (1, 2)},
    "trace": {"x": SQUARES, "offset": 1, "axis1": 1, "axis2": 2, "dtype": "f8"},
    "tril": {"x": SQUARES, "k": 1},
    "triu": {"x": SQUARES, "k": -1},
    "unstack": {"x": ROWS, "axis": 1},
    "std": {"x": ROWS, "axis": 0, "correction": 1, "keepdims": False},
    "sum": {"x": ROWS, "axis": 0, "dtype": "f8", "keepdims": False},
    "take": {"x": ROWS, "indices": [1, 2], "axis": 1},
    "to_array": {"out": None, "name": "kept"},
    "top_k": {"x": ROWS, "k": 2, "axis": 1, "largest": False},
    "weights": {"path": "nowhere.gguf"},
    "var": {"x": ROWS, "axis": 0, "correction": 1, "keepdims": False},
    "vecdot": {"x1": ROWS, "x2": ROWS, "axis": 1},
    "where": {"condition": ROWS > 1, "x1": ROWS, "x2": 0},
    "window": {"x": NUMBERS, "size": 3, "step": 1, "pad": 0},
    "arange": {"start": 0, "stop": 5, "step": 1, "dtype": "i4"},
    **{name: {"shape": (2, 3), "dtype": "f4"} for name in ("zeros", "ones", "empty")},
    **{name: {"x": ROWS, "dtype": "f4"} for name in ("zeros_like", "ones_like", "empty_like")},
    "full": {"shape": (2, 3), "fill_value": 1, "dtype": "f4"},
    "full_like": {"x": ROWS, "fill_value": 1, "dtype": "f4"},
    "eye": {"n_rows": 2, "n_cols": 3, "k": 1, "dtype": "f4"},
    "linspace": {"start": 0, "stop": 1, "num": 5, "dtype": "f4", "endpoint": True},
    "finfo": {0: "f4"},
    "iinfo": {0: "i4"},
    "isdtype": {"dtype": "f4", "kind": "integral"},
    "can_cast": {0: "f4", 1: "f8"},
    "result_type": {0: ROWS, 1: "f8", 2: 1.0},
    "median": {"x": ROWS, "axis": 0, "keepdims": False},
    "percentile": {"x": ROWS, "q": [5, 50], "axis": 0, "keepdims": True},
    "round": {0: ROWS, 1: 2},
    **{name: {"x": ROWS, "axis": 0, "keepdims": False} for name in ("nanmax", "nanmean", "nanmin", "nansum")},
    **{name: {"x": ROWS, "axis": 0, "correction": 1, "keepdims": True} for name in ("nanstd", "nanvar")},
    "nan_to_num": {"x": ROWS, "nan": 0.5, "posinf": 9, "neginf": -9},
    **{name: {"x": WHOLE, "max_values": 5} for name in ("unique_values", "unique_counts")},
    "grad": {"loss": TOTAL, "wrt": ROWS},
    "recompute": {"x": ROWS * 2.0},
    "parameter": {"value": [1.0, 2.0], "name": "w", "dtype": "f4"},
    "nn.dropout": {"x": ROWS, "rate": 0.5, "seed": 1},
    "nn.attention": {
        "q": SQUARES, "k": SQUARES, "v": SQUARES, "causal": True, "window": 2, "mask": None, "scale": 1.0,
    },
    "nn.avg_pool1d": {
        "x": ROWS, "kernel": 2, "stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True, "count_include_pad": True,
    },
    "nn.avg_pool2d": {
        "x": IMAGES, "kernel": 2, "stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True,
        "count_include_pad": True,
    },
    "nn.max_pool1d": {"x": ROWS, "kernel": 2, "stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True,
                      "return_indices": True},
    "nn.lp_pool1d": {"x": ROWS, "p": 2.0, "kernel": 2, "stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True},
    "nn.lp_pool2d": {"x": IMAGES, "p": 3, "kernel": 2, "stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True},
    "nn.lp_pool3d": {"x": IMAGES, "p": 1, "kernel": 2},
    "nn.avg_pool3d": {"x": IMAGES, "kernel": 2},
    "nn.max_pool3d": {"x": IMAGES, "kernel": 2},
    "nn.conv3d": {"x": IMAGES[:, None], "weight": np.ones((2, 1, 2, 2, 2), "f4"), "dtype": "float64"},
    **{
        f"nn.conv_transpose{dims}d": {
            "x": items, "weight": np.ones((4, 3, *(2,) * dims), "f4"), "bias": np.ones(6, "f4"), "stride": 2,
            "padding": [(1, 0)] * dims, "dilation": 1, "groups": 2, "output_padding": 1, "dtype": "float64",
        }
        for dims, items in ((1, IMAGES[:, :, 0]), (2, IMAGES), (3, IMAGES[:, :, None]))
    },
    "nn.max_pool2d": {"x": IMAGES, "kernel": 2, "stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True},
    "nn.conv1d": {
        "x": SQUARES, "weight": np.ones((2, 3, 2), "f4"), "bias": np.ones(2, "f4"), "stride": 1, "padding": 1,
        "dilation": 1, "groups": 1,
    },
    "nn.conv2d": {
        "x": IMAGES, "weight": np.ones((2, 4, 2, 2), "f4"), "bias": None, "stride": 1, "padding": (1, (0, 1)),
        "dilation": 1, "groups": 1,
    },
    "nn.cross_entropy": {"logits": ROWS, "labels": fc.source(np.zeros(6, int)), "axis": 1, "reduction": "mean"},
    "nn.binary_cross_entropy": {"logits": ROWS, "labels": ROWS, "reduction": None},
    "nn.mse": {"x": ROWS, "target": ROWS, "reduction": "sum"},
    "nn.huber": {"x": ROWS, "target": ROWS, "delta": 1.0, "reduction": None},
    "nn.position": {"tokens": ROWS, "text": fc.source(np.zeros(6, int)), "slots": 2},
    "nn.rope": {
        "x": ROWS, "at": fc.source(np.zeros(6, int)), "base": 500.0, "pairs": "halves", "dims": 2,
        "scaling": "yarn", "factor": 4.0, "original_context": 64, "ext_factor": 0.5, "attn_factor": 1.5,
        "beta_fast": 16.0, "beta_slow": 2.0, "frequency_factors": np.ones(1, "f4"),
    },
    "nn.grid_sample": {
        "x": IMAGES, "grid": np.zeros((2, 3, 2), "f4"), "method": "cubic", "padding": "reflection",
        "align_corners": True,
    },
    "nn.resize": {
        "x": IMAGES, "size": (3, 4), "axes": (2, 3), "method": "linear", "coordinates": "tf_crop_and_resize",
        "nearest": "floor", "antialias": True, "cubic_coefficient": -0.5, "exclude_outside": True,
        "region": [(0, 1), (0.5, 2)], "fill": 1.0,
    },
    "nn.softmax": {"x": ROWS, "axis": 1},
    "nn.log_softmax": {"x": ROWS, "axis": 1},
    "nn.logsumexp": {"x": ROWS, "axis": 1, "keepdims": True},
    "nn.elu": {"x": ROWS, "alpha": 1.0},
    "nn.leaky_relu": {"x": ROWS, "slope": 0.1},
    "nn.gelu": {"x": ROWS, "approximate": "tanh"},
    "nn.group_norm": {"x": IMAGES, "groups": 2, "eps": 1e-5, "weight": np.ones(4, "f4"), "bias": None},
    "nn.instance_norm": {"x": IMAGES, "eps": 1e-5, "weight": np.ones(4, "f4"), "bias": None},
    "nn.layer_norm": {"x": ROWS, "axis": 1, "eps": 1e-5, "weight": np.ones(4, "f4"), "bias": None},
    "nn.rms_norm": {"x": ROWS, "axis": 1, "eps": 1e-5, "weight": np.ones(4, "f4")},
    "nn.rnn": {
        "x": SQUARES[:, :1], "weight": np.ones((2, 4), "f4"), "recurrent": np.ones((2, 2), "f4"), "bias": np.ones(2, "f4"),
        "initial": np.ones(2, "f4"), "lengths": [1, 2], "reverse": True, "activation": fc.tanh,
    },
    "nn.lstm": {
        "x": SQUARES[:, :1], "weight": np.ones((8, 4), "f4"), "recurrent": np.ones((8, 2), "f4"), "bias": np.ones(8, "f4"),
        "initial": [np.ones(2, "f4")] * 2, "peephole": np.ones((3, 2)), "lengths": [1, 2], "reverse": True,
        "activations": (fc.nn.sigmoid, fc.tanh, fc.tanh),
    },
    "nn.gru": {
        "x": SQUARES[:, :1], "weight": np.ones((6, 4), "f4"), "recurrent": np.ones((6, 2), "f4"), "bias": np.ones(6, "f4"),
        "recurrent_bias": np.ones(6), "initial": np.ones(2, "f4"), "lengths": [1, 2], "reverse": True,
        "reset_after": False, "activations": (fc.nn.sigmoid, fc.tanh),
    },
    "nn.selective_scan": {
        "u": SQUARES, "delta": SQUARES, "A": np.ones((4, 2), "f4"), "B": SQUARES[..., :2], "C": SQUARES[..., :2],
        "D": np.ones(4, "f4"),
    },
    "nn.experts": {"x": ROWS, "weights": np.ones((3, 2, 4), "f4"), "chosen": fc.source(np.zeros((6, 2), "i4"))},
    "nn.self_attention": {
        "q": SQUARES, "k": SQUARES, "v": SQUARES, "text": fc.source(np.zeros(2, "i4")), "window": 2, "context": 9, "scale": 0.5,
        "slots": 3,
    },
    "nn.unfold": {"x": ROWS, "size": 2, "axis": 1, "step": 1, "dilation": 1},
    **{f"fft.{name}": {"x": ROWS, "n": 3, "axis": 1, "norm": "ortho"} for name in ("fft", "rfft", "ifft", "irfft")},
    **{f"fft.{name}": {"n": 5, "d": 0.5, "dtype": "f4"} for name in ("fftfreq", "rfftfreq")},
    **{f"fft.{name}": {"x": ROWS, "axes": 1} for name in ("fftshift", "ifftshift")},
    "linalg.solve": {"x1": GRAM, "x2": np.ones(3)},
    "linalg.cholesky": {"x": GRAM, "upper": True},
    "linalg.matrix_norm": {"x": SQUARES, "keepdims": True, "ord": "fro"},
    "linalg.matrix_power": {"x": GRAM, "n": 2},
    "linalg.matrix_rank": {"x": SQUARES, "rtol": None},
    "linalg.matmul": {"x1": ROWS, "x2": np.ones((4, 2), "f4"), "dtype": "f4"},
    "linalg.norm": {"x": SQUARES, "ord": 2, "axis": 1, "keepdims": True},
    "linalg.pinv": {"x": SQUARES, "rtol": 1e-3},
    "linalg.qr": {"x": SQUARES, "mode": "reduced"},
    "linalg.svd": {"x": SQUARES, "full_matrices": False},
    "linalg.svdvals": {"x": SQUARES},
    "linalg.vecdot": {"x1": ROWS, "x2": ROWS, "axis": 1},
    "linalg.vector_norm": {"x": SQUARES, "axis": 1, "keepdims": True, "ord": 3},
    **{f"linalg.{name}": {"x": GRAM} for name in ("det", "eigh", "eigvalsh", "inv", "slogdet")},
    "random.uniform": {"length": 5, "shape": (2,), "low": 0.0, "high": 1.0, "dtype": "f4", "seed": 1},
    "random.normal": {"length": 5, "shape": (2,), "mean": 0.0, "std": 1.0, "dtype": "f4", "seed": 1},
    "random.integers": {"length": 5, "low": 0, "high": 4, "shape": (2,), "dtype": "i4", "seed": 1},
}  # fmt: skip
"""A sound call of each function that takes more than elements of any kind."""


def _sound(name: str, function: Any) -> Call:
    if name in GOOD:
        return Call(name, function, GOOD[name])
    if isinstance(function, Function):
        return Call(name, function, dict.fromkeys(range(function.op.arity), ROWS))
    required = [
        one.name for one in inspect.signature(function).parameters.values() if one.default is inspect.Parameter.empty
    ]
    return Call(name, function, dict.fromkeys(required, ROWS))


def functions() -> list[Call]:
    """Return a sound call of every public function of `fc` and its namespaces."""
    calls = []
    for room, prefix in ((fc, ""), (fc.fft, "fft."), (fc.linalg, "linalg."), (fc.nn, "nn."), (fc.random, "random.")):
        for name in sorted(set(getattr(room, "__all__", ())) - _LOW_LEVEL - _VERBS):
            function = getattr(room, name)
            is_result = isinstance(function, type) and issubclass(function, Exception | Warning | tuple)
            if callable(function) and not is_result:
                calls.append(_sound(prefix + name, function))
    return calls


BINARY: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "eq"), (ROWS, 1)),
    "matmul": (ROWS, np.ones((4, 2), "f4")),
    "getitem": (ROWS, (slice(None), 1)),
    "rshift": (WHOLE, 1),
    "and_": (WHOLE, 1),
}
"""Operators, and operands of each."""


def operators() -> list[Call]:
    """Return a sound call of operators, of methods, and of NumPy's functions."""
    return [
        *(Call(f"x {name} y", partial(getattr(operator, name), x), {0: y}) for name, (x, y) in BINARY.items()),
        Call("y matmul x", KNOWN.__rmatmul__, {0: np.ones(3)}),
        Call("np.sum", partial(np.sum, ROWS), {"axis": 0, "dtype": "f8", "keepdims": True}),
        Call("np.std", partial(np.std, ROWS), {"axis": 0, "ddof": 1, "keepdims": True}),
        Call("np.round", partial(np.round, ROWS), {0: 2}),
        Call("np.clip", partial(np.clip, ROWS), {0: 0, 1: 1}),
        Call("head", ROWS.head, {0: 2}),
        Call("reshape", ROWS.reshape, {0: -1, 1: 2, 2: 2}),
        Call("cumsum", ROWS.cumsum, {"axis": 0, "dtype": "f8"}),
        Call("round(x)", ROWS.round, {0: 2}),
        Call("pin", lambda device: (ROWS * 2).on(device), {0: "cpu"}),
        Call("name", lambda name: fc.source(np.ones(3), name=name), {0: "given"}),
    ]


VERBS: dict[str, list[str]] = {
    "plan": [
        "memory", "device", "device_memory", "strategy", "precision", "isolate", "launch_timeout_s",
    ],
    "resolve": [
        "progress", "on_batch", "stall_timeout_s", "checkpoint", "checkpoint_every", "tune", "metrics",
        "metrics_port", "metrics_log", "trace", "page",
    ],
    "open_flow": ["mode"],
}  # fmt: skip
"""The options of each verb that are tried there."""
