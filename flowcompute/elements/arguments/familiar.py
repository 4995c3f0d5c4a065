"""Names of other libraries, and what stands for them here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

_CLOSE = 0.7  # the least likeness of a name that is proposed, as difflib counts; below it proposals mislead

FUNCTIONS = {
    "append": "fc.concat",
    "argpartition": "fc.top_k(x, k, axis=1) for the largest of each item; of -x for the smallest",
    "argsort": "fc.argsort(x, axis=1)",
    "argwhere": "fc.range(len(x))[mask], the numbers of the records",
    "array": "fc.source(array) makes a stream, fc.constant(array) a resident value",
    "as_tensor": "fc.source(array) makes a stream, fc.constant(array) a resident value",
    "asarray": "fc.source(array) makes a stream, fc.constant(array) a resident value",
    "average": "fc.mean",
    "bernoulli": "fc.random.uniform(n, seed=seed) < p",
    "bincount": "fc.bincount(x, length)",
    "cat": "fc.concat",
    "cdist": "fc.linalg.norm(x[:, None] - table, axis=2), distances to each row of a table",
    "choice": "x[fc.random.uniform(len(x), seed=seed) < p], a random part in order",
    "column_stack": "fc.concat([x, y[:, None]], axis=1)",
    "compress": "x[mask]",
    "concatenate": "fc.concat",
    "convolve": "fc.convolve",
    "corrcoef": "fc.corrcoef, whose records are observations",
    "cov": "fc.cov, whose records are observations",
    "cumsum": "fc.cumulative_sum",
    "dot": "fc.matmul, or x @ y; fc.vecdot for the product of two vectors",
    "extract": "x[mask]",
    "filter": "x[mask]",
    "flatten": "fc.flatten(x), or fc.reshape(x, (-1, n)) for each item",
    "from_array": "fc.source(array)",
    "from_generator": "fc.iterate(generator, shape=..., dtype=...)",
    "from_numpy": "fc.source(array)",
    "flatnonzero": "fc.range(len(x))[mask], the numbers of the records",
    "fromiter": "fc.iterate(iterable, shape=..., dtype=..., items=True)",
    "groupby": "fc.segment_sum(x, keys, num_segments=n) and its kin",
    "histogram": "fc.histogram(x, bins, range)",
    "hstack": "fc.concat(..., axis=1)",
    "inner": "fc.vecdot",
    "interpolate": "fc.nn.resize",
    "join": "fc.concat([x, y], axis=1), which joins by position",
    "linalg.lstsq": "fc.linalg.solve(x.T @ x, x.T @ y)",
    "linear": "x @ w.T + b",
    "load": "fc.open(path)",
    "lstsq": "fc.linalg.solve(x.T @ x, x.T @ y)",
    "map": "fc.host(function, x)",
    "map_batches": "fc.host(function, x)",
    "median": "fc.median",
    "memmap": "fc.open(path)",
    "merge": "fc.concat([x, y], axis=1), which joins by position",
    "movmean": "fc.window(x, size).mean(axis=1)",
    "nonzero": "fc.range(len(x))[mask], the numbers of the records",
    "partition": "fc.top_k(x, k, axis=1) for the largest of each item; of -x for the smallest",
    "percentile": "fc.quantile(x, q / 100)",
    "permutation": "x[fc.random.uniform(len(x), seed=seed) < p], a random part: a stream keeps its order",
    "put_along_axis": "fc.scatter_elements",
    "quantile": "fc.quantile",
    "rand": "fc.random.uniform(n, shape=..., seed=seed)",
    "randint": "fc.random.integers(n, low=..., high=..., seed=seed)",
    "randn": "fc.random.normal(n, shape=..., seed=seed)",
    "random": "fc.random.uniform(n, shape=..., seed=seed)",
    "read": "fc.open(path)",
    "rolling": "fc.window(x, size)",
    "rolling_mean": "fc.window(x, size).mean(axis=1)",
    "sample": "x[fc.random.uniform(len(x), seed=seed) < p], a random part in order",
    "save": "x >> fc.save(path)",
    "scatter": "fc.scatter_elements",
    "scatter_add": 'fc.scatter_elements(x, indices, updates, axis, "add")',
    "segment_count": "fc.bincount(keys, length)",
    "select": "x[mask], or fc.where",
    "shuffle": "x[fc.random.uniform(len(x), seed=seed) < p], a random part: a stream keeps its order",
    "sliding_window_view": "fc.window(x, size), whose axis 1 is the window",
    "sort": "fc.sort(x, axis=1) inside of items; fc.top_k gives the largest of a stream",
    "standard_normal": "fc.random.normal(n, shape=..., seed=seed)",
    "swapaxes": "fc.permute_dims or fc.moveaxis",
    "tanh": "fc.tanh",
    "tensor": "fc.constant(array)",
    "topk": "fc.top_k",
    "transpose": "fc.permute_dims(x, axes) or x.T",
    "truncatediv": "fc.trunc_divide",
    "unique": "fc.unique_values(x, max_values=n)",
    "unique_all": "fc.unique_counts(x, max_values=n): positions of values would be as long as the stream",
    "unique_counts": "fc.unique_counts(x, max_values=n)",
    "unique_inverse": "fc.unique_values(x, max_values=n): positions of values would be as long as the stream",
    "unique_values": "fc.unique_values(x, max_values=n)",
    "vstack": "fc.concat",
    "zip": "fc.concat([x, y], axis=1), which joins by position; fc.stack makes an axis",
}
"""Replacements of functions that other libraries have, or that take other arguments there."""

ATTRIBUTES = {
    "apply": "fc.host(function, x)",
    "argsort": "fc.argsort(x)",
    "collect": "x.resolve()",
    "compute": "x.resolve()",
    "diagonal": "fc.diagonal(x)",
    "filter": "x[mask]",
    "flatten": "fc.flatten(x)",
    "groupby": "fc.segment_sum(x, keys, num_segments=n) and its kin",
    "iloc": "x[start:stop]",
    "item": "x.resolve()",
    "map": "fc.host(function, x)",
    "map_batches": "fc.host(function, x)",
    "median": "fc.median(x, axis)",
    "nonzero": "fc.range(len(x))[mask], the numbers of the records",
    "numpy": "x.to_numpy()",
    "quantile": "fc.quantile(x, q, axis)",
    "relu": "fc.nn.relu(x)",
    "rolling": "fc.window(x, size)",
    "sample": "x[fc.random.uniform(len(x), seed=seed) < p], a random part in order",
    "save": "x >> fc.save(path)",
    "sigmoid": "fc.nn.sigmoid(x)",
    "softmax": "fc.nn.softmax(x)",
    "sort": "fc.sort(x) inside of items; fc.top_k gives the largest of a stream",
    "squeeze": "fc.squeeze(x)",
    "tail": "x[-n:]",
    "take": "fc.take(x, indices, axis)",
    "tolist": "x.to_numpy().tolist()",
    "topk": "fc.top_k(x, k)",
    "trace": "fc.trace(x)",
    "transpose": "fc.permute_dims(x, axes) or x.T",
    "unsqueeze": "fc.expand_dims(x, axis)",
    "values": "x.to_numpy()",
    "view": "fc.reshape(x, shape)",
}
"""Replacements of attributes that arrays and tables of other libraries have."""


def no_such_name(name: str, rooms: Mapping[str, Iterable[str]]) -> AttributeError:
    """Return the error for a name that a public module does not have. It says what stands for it.

    Args:
        name: what was asked for.
        rooms: the names of modules, by what users write before them. The first module is the one that was asked.
    """
    asked = next(iter(rooms))
    there = {own: f"{room}.{own}" for room in reversed(list(rooms)) for own in rooms[room]}
    plain = name.lower()
    near = [plain] if plain in there else difflib.get_close_matches(plain, there, 1, _CLOSE)
    hint = ""
    if plain in FUNCTIONS and plain not in there:
        hint = f"; use {FUNCTIONS[plain]}"
    elif near:
        hint = f"; did you mean {there[near[0]]}?"
    return AttributeError(f"{asked.replace('fc', 'flowcompute', 1)} has no {name!r}{hint}", name=name)
