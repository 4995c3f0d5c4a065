"""Signatures of version 2024.12 of the standard, from its text: one for each function of the namespace."""

from __future__ import annotations

_UNARY = "(x, /)"
_BINARY = "(x1, x2, /)"
_REDUCTION = "(x, /, *, axis=None, keepdims=False)"
_SUMMING = "(x, /, *, axis=None, dtype=None, keepdims=False)"
_SPREAD = "(x, /, *, axis=None, correction=0.0, keepdims=False)"
_RUNNING = "(x, /, *, axis=None, dtype=None, include_initial=False)"
_SHAPED = "(shape, *, dtype=None, device=None)"
_LIKE = "(x, /, *, dtype=None, device=None)"
_SORTING = "(x, /, *, axis=-1, descending=False, stable=True)"
_TRIANGLE = "(x, /, *, k=0)"
_TRANSFORM = "(x, /, *, n=None, axis=-1, norm='backward')"
_TRANSFORM_N = "(x, /, *, s=None, axes=None, norm='backward')"
_FREQUENCIES = "(n, /, *, d=1.0, dtype=None, device=None)"

_SHARED = {
    _UNARY: "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf "
    "isnan log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt "
    "tan tanh trunc nonzero unique_all unique_counts unique_inverse unique_values matrix_transpose "
    "linalg.matrix_transpose linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.slogdet linalg.svdvals",
    _BINARY: "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal "
    "floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum "
    "minimum multiply nextafter not_equal pow remainder subtract matmul linalg.matmul linalg.outer linalg.solve",
    _REDUCTION: "all any max mean min argmax argmin count_nonzero",
    _SUMMING: "prod sum",
    _SPREAD: "std var",
    _RUNNING: "cumulative_prod cumulative_sum",
    _SHAPED: "empty ones zeros",
    _LIKE: "empty_like ones_like zeros_like",
    _SORTING: "argsort sort",
    _TRIANGLE: "tril triu",
    _TRANSFORM: "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft",
    _TRANSFORM_N: "fft.fftn fft.ifftn fft.rfftn fft.irfftn",
    _FREQUENCIES: "fft.fftfreq fft.rfftfreq",
    "(x, /, *, axes=None)": "fft.fftshift fft.ifftshift",
    "(x1, x2, /, *, axes=2)": "tensordot linalg.tensordot",
    "(x1, x2, /, *, axis=-1)": "vecdot linalg.vecdot linalg.cross",
    "(x, /, *, rtol=None)": "linalg.matrix_rank linalg.pinv",
}

SIGNATURES: dict[str, str] = {
    **{name: signature for signature, names in _SHARED.items() for name in names.split()},
    "__array_namespace_info__": "()",
    "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "astype": "(x, dtype, /, *, copy=True, device=None)",
    "broadcast_arrays": "(*arrays)",
    "broadcast_to": "(x, /, shape)",
    "can_cast": "(from_, to, /)",
    "clip": "(x, /, min=None, max=None)",
    "concat": "(arrays, /, *, axis=0)",
    "diff": "(x, /, *, axis=-1, n=1, prepend=None, append=None)",
    "expand_dims": "(x, /, axis)",
    "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "finfo": "(type, /)",
    "flip": "(x, /, *, axis=None)",
    "from_dlpack": "(x, /, *, device=None, copy=None)",
    "full": "(shape, fill_value, *, dtype=None, device=None)",
    "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
    "iinfo": "(type, /)",
    "isdtype": "(dtype, kind)",
    "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "meshgrid": "(*arrays, indexing='xy')",
    "moveaxis": "(x, source, destination, /)",
    "permute_dims": "(x, /, axes)",
    "repeat": "(x, repeats, /, *, axis=None)",
    "reshape": "(x, /, shape, *, copy=None)",
    "result_type": "(*arrays_and_dtypes)",
    "roll": "(x, /, shift, *, axis=None)",
    "searchsorted": "(x1, x2, /, *, side='left', sorter=None)",
    "squeeze": "(x, /, axis)",
    "stack": "(arrays, /, *, axis=0)",
    "take": "(x, indices, /, *, axis=None)",
    "take_along_axis": "(x, indices, /, *, axis=-1)",
    "tile": "(x, repetitions, /)",
    "unstack": "(x, /, *, axis=0)",
    "where": "(condition, x1, x2, /)",
    "linalg.cholesky": "(x, /, *, upper=False)",
    "linalg.diagonal": "(x, /, *, offset=0)",
    "linalg.matrix_norm": "(x, /, *, keepdims=False, ord='fro')",
    "linalg.matrix_power": "(x, n, /)",
    "linalg.qr": "(x, /, *, mode='reduced')",
    "linalg.svd": "(x, /, *, full_matrices=True)",
    "linalg.trace": "(x, /, *, offset=0, dtype=None)",
    "linalg.vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)",
}

_OPERATORS = (
    "add and eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv xor "
    "radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rsub rtruediv rxor"
)

METHODS: dict[str, str] = {
    **{f"__{name}__": "(self, other, /)" for name in _OPERATORS.split()},
    **{f"__{name}__": "(self, /)" for name in ("abs", "invert", "neg", "pos")},
    "__array_namespace__": "(self, /, *, api_version=None)",
    "__getitem__": "(self, key, /)",
    "__setitem__": "(self, key, value, /)",
    "__dlpack_device__": "(self, /)",
    "to_device": "(self, device, /, *, stream=None)",
}
"""Methods of the array object. `bool` and its kin are Python's; in-place operators are Python's fallback."""

INFO: dict[str, str] = {
    "capabilities": "(self)",
    "default_device": "(self)",
    "default_dtypes": "(self, *, device=None)",
    "devices": "(self)",
    "dtypes": "(self, *, device=None, kind=None)",
}
