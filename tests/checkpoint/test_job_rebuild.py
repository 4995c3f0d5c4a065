"""What no call of a user makes is no operation: attributes, operands and specs that do not belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.rebuild import rebuild_job
from flowcompute.elements.destination import Destination
from tests.checkpoint.elements import TEXT, divided, remainder
from tests.checkpoint.kept import Store, bindings, described, graph_of
from tests.checkpoint.operands import items, numbers, rows, unknown

Change = Callable[[dict[str, Any]], object]


def attrs(**changes: Any) -> Change:
    """Another attribute."""
    return lambda node: node["attrs"].update(changes)


def said(**changes: Any) -> Change:
    """Another field."""
    return lambda node: node.update(changes)


def real(number: float) -> dict[str, str]:
    return {"float": number.hex()}


def _dot_of_runs() -> Any:
    runs, others = (fc.cut(one, 5, tail="emit") for one in (numbers(), numbers() + 1))
    return rows("f8").max() + fc.vecdot(runs, others)


def _convolved(groups: int = 1) -> Any:
    return fc.nn.conv1d(items(2 * groups, 9), np.ones((4, 2, 4), "f4"), groups=groups)


def _others() -> Any:
    return fc.constant(np.ones((3, 2, 8), "f4")).sum() + fc.constant(np.ones((2, 2, 8))).sum()


def both(*changes: Change) -> Change:
    return lambda node: [change(node) for change in changes]


WRONG: dict[str, tuple[Callable[[], Any], str, dict[str, Change]]] = {
    "index": (lambda: items(4, 6)[:, 1:3, ::-1], "view.index", {
        "beyond": attrs(index=[[3, 2, 1], [5, 6, -1]]),
        "far beyond": attrs(index=[[1, 2, 1 << 40], [5, 6, -1]]),
        "before": attrs(index=[[-1, 2, 1], [5, 6, -1]]),
        "backwards beyond": attrs(index=[[0, 2, -1], [5, 6, -1]]),
        "more than there are": both(attrs(index=[[0, 5, 1], [5, 6, -1]]), said(shape=[5, 6])),
        "no step": attrs(index=[[1, 2, 0], [5, 6, -1]]),
        "an axis less": attrs(index=[[1, 2, 1]]),
        "an axis more": attrs(index=[[1, 2, 1], [5, 6, -1], 0]),
        "a position beyond": both(attrs(index=[4, [5, 6, -1]]), said(shape=[6])),
        "a negative position": both(attrs(index=[-1, [5, 6, -1]]), said(shape=[6])),
        "two numbers": attrs(index=[[1, 2], [5, 6, -1]]),
        "a flag": both(attrs(index=[True, [5, 6, -1]]), said(shape=[6])),
        "another shape": said(shape=[3, 6]),
    }),
    "windows": (lambda: fc.nn.unfold(items(6, 7), 2, 2, step=2), "view.windows", {
        "too large": attrs(windows=[[1, 8, 2, 1]]),
        "no dilation": attrs(windows=[[1, 2, 2, 0]]),
        "no step": attrs(windows=[[1, 2, 0, 1]]),
        "backwards": attrs(windows=[[1, 2, -2, 1]]),
        "of another axis": attrs(windows=[[2, 2, 2, 1]]),
        "before the first axis": attrs(windows=[[-1, 2, 2, 1]]),
        "of one axis twice": both(attrs(windows=[[1, 2, 2, 1], [1, 2, 2, 1]]), said(shape=[6, 1, 2, 2])),
        "of three numbers": attrs(windows=[[1, 2, 2]]),
        "of text": attrs(windows=[["a", 2, 2, 1]]),
        "none": attrs(windows=[]),
    }),
    "pad": (lambda: fc.pad(items(3, 4), 1), "view.pad", {
        "negative": attrs(widths=[[1, 1], [-1, 3]]),
        "three": attrs(widths=[[1, 1], [1, 1, 1]]),
        "an axis more": attrs(widths=[[0, 0], [1, 1], [1, 1]]),
        "a number": attrs(widths=1),
        "an unknown mode": attrs(mode="mean"),
        "text": attrs(fill="0"),
        "a fill that is not of this mode": attrs(mode="edge", fill=real(1.0)),
    }),
    "take": (lambda: fc.take(rows(), [0, 5], axis=1), "view.take", {
        "another axis": attrs(axis=1),
        "a flag": attrs(axis=False),
        "an axis far away": attrs(axis=64),
        "one operand": said(inputs=[0]),
        "floats": said(inputs=[0, 0]),
    }),
    "views": (lambda: fc.permute_dims(items(3, 4), (0, 2, 1)), "view.permute_dims", {
        "one axis twice": attrs(axes=[0, 0]),
        "an axis too many": attrs(axes=[1, 0, 2]),
        "in order": both(attrs(axes=[0, 1]), said(shape=[3, 4])),
        "negative": attrs(axes=[-1, 0]),
    }),
    "reshape": (lambda: fc.reshape(items(3, 4), (-1, 12)), "view.reshape", {
        "more numbers": said(shape=[13]),
        "far more numbers": said(shape=[1 << 62, 1 << 62]),
        "the same": said(shape=[3, 4]),
    }),
    "broadcast": (lambda: fc.broadcast_to(items(1, 4), (-1, 3, 4)), "view.broadcast_to", {
        "another size": said(shape=[3, 5]), "another rank": said(shape=[2, 3, 4]),
    }),
    "stack": (lambda: fc.stack([rows(), rows() + 1], axis=1), "view.stack", {
        "another axis": attrs(axis=1), "the stream": attrs(axis=-1), "of two dtypes": said(dtype="float64"),
        "of nothing": said(inputs=[]), "of a stream and a number": said(inputs=[0, 2]),
    }),
    "reduce": (lambda: items(3, 4).sum(axis=(1, 2)), "reduce.sum", {
        "beyond": attrs(axes=[0, 2]), "unsorted": attrs(axes=[1, 0]), "twice": attrs(axes=[0, 0]),
        "negative": attrs(axes=[-1]), "not said": said(attrs={}), "kept as a number": attrs(keepdims=0),
        "another dtype": said(dtype="float64"), "something more": attrs(dtype="float32"),
    }),
    "reduce of nothing": (lambda: items(0, 4).max(axis=2), "reduce.max", {
        "an empty axis": both(attrs(axes=[0]), said(shape=[4]))}),
    "reduce of halves": (lambda: rows("f2").max(axis=1), "reduce.max", {
        "in halves": said(op="reduce.sum"), "means": said(op="fold.mean", attrs={"keepdims": False})}),
    "arg": (lambda: rows().argmax(axis=1), "reduce.argmax", {"as floats": said(dtype="float32")}),
    "dot": (lambda: fc.vecdot(rows(), rows() + 1), "reduce.vecdot", {
        "two axes": attrs(axes=[0, 0]), "kept": attrs(keepdims=True), "one operand": said(inputs=[0]),
        "of a number": said(inputs=[0, 2]),
    }),
    "fold": (lambda: rows().sum(axis=0), "fold.sum", {
        "another shape": said(shape=[5]), "kept": attrs(keepdims=True), "a stream": said(stream=True),
        "of nothing": said(inputs=[]), "of two": said(inputs=[0, 0]),
    }),
    "fold of a resident": (lambda: np.ones(3) * fc.constant(2.0), "elementwise.multiply", {
        "sum": said(op="fold.sum", inputs=[0], attrs={"keepdims": False})}),
    "fold of integers": (lambda: rows("i4").sum(axis=0), "fold.sum", {"as a mean": said(op="fold.mean")}),
    "dot of streams": (lambda: numbers("f4").sum() + fc.vecdot(numbers(), np.ones(12)), "fold.vecdot", {
        "kept": both(attrs(keepdims=True), said(shape=[1])), "not cut along": said(inputs=[3, 4]),
        "of residents": said(inputs=[4, 4]), "of two dtypes": said(inputs=[3, 0]), "of one": said(inputs=[3]),
    }),
    "var": (lambda: rows().var(axis=0), "fold.var", {
        "without a correction": attrs(correction=None), "a whole correction": attrs(correction=0),
        "of one of many": attrs(inner=2), "of fewer than none": attrs(inner=-1),
    }),
    "argmax": (lambda: rows().argmax(), "fold.argmax", {
        "of none": attrs(inner=0), "of text": attrs(inner="6"), "of the wrong two": said(inputs=[1, 1]),
    }),
    "each": (lambda: fc.cut(numbers(), 5, tail="emit").sum(axis=1), "rebatch.each", {
        "another fold": attrs(fold="median"), "of none": attrs(every=0), "two streams": said(inputs=[0, 0]),
        "as integers": said(dtype="int64"), "means of integers": attrs(fold="argmin"),
    }),
    "each of two": (lambda: numbers("f4").sum() + _dot_of_runs(), "rebatch.each", {
        "of two dtypes": said(inputs=[6, 0]), "of two shapes": said(inputs=[6, 3])}),
    "section": (lambda: rows()[2:9:3], "rebatch.section", {
        "behind the end": attrs(start=13, stop=13), "no step": attrs(step=0), "everything": attrs(start=0, stop=12, step=1),
        "before the start": attrs(start=-1), "further": attrs(stop=13), "another length": said(length=4),
    }),
    "cut": (lambda: fc.cut(numbers(), 5, tail="pad"), "rebatch.cut", {
        "of none": attrs(every=0), "an unknown tail": attrs(tail="keep"), "text": attrs(fill="x"), "error": attrs(tail="error"),
        "a list": attrs(fill=[0]),
    }),
    "window": (lambda: fc.window(numbers(), 5, pad=1.0), "window.window", {
        "of none": attrs(size=0), "no step": attrs(step=0), "before more than there is": attrs(before=5),
        "behind more than there is": attrs(after=5), "elsewhere": attrs(before=1), "text": attrs(pad="mean"),
        "as a convolution": attrs(before=4, after=4, pad=1),
    }),
    "convolve": (lambda: fc.convolve(numbers(), np.ones(3)), "window.window", {
        "with steps": attrs(step=2), "a flag": attrs(pad=False), "another number": attrs(pad=2)}),
    "flatten": (lambda: fc.flatten(rows()), "rebatch.flatten", {"of more": attrs(numbers=7)}),
    "repeat": (lambda: fc.repeat(rows(), 3, axis=0), "rebatch.repeat", {"less than never": attrs(count=-1)}),
    "select": (lambda: rows()[numbers() > 0], "select.select", {
        "by itself": said(inputs=[0, 0]), "of known length": said(length=12)}),
    "concat": (lambda: fc.concat([numbers(), unknown()]), "rebatch.concat", {
        "one alone": said(inputs=[0]), "of two dtypes": said(inputs=[0, 3])}),
    "along": (lambda: numbers() * np.ones(12), "along.along", {
        "of a stream": said(inputs=[0]), "longer": said(length=13)}),
    "where": (lambda: fc.where(rows() > 0, rows(), 0), "elementwise.where", {
        "floats": said(inputs=[0, 0, 0]), "two": said(inputs=[2, 0]), "something more": attrs(axis=0)}),
    "cast": (lambda: rows().astype("i2"), "elementwise.astype", {
        "another dtype": attrs(dtype={"dtype": "int8"}), "text": attrs(dtype="int16"), "none": said(attrs={})}),
    "add": (lambda: rows() + np.ones(6, "f4"), "elementwise.add", {
        "of one": said(inputs=[0]), "of three": said(inputs=[0, 0, 0]), "with an attribute": attrs(axis=0),
        "of bits": said(op="elementwise.bitwise_and"), "another length": said(length=13),
        "as numbers of one": said(op="elementwise.exp"), "drawn": said(op="elementwise.uniform.32"),
    }),
    "unequal dtypes": (lambda: (rows() + rows("f8")) * rows(), "elementwise.add", {"uncast": said(inputs=[0, 2])}),
    "range": (lambda: fc.range(5), "elementwise.range", {
        "of unknown length": said(length=None), "no stream": said(stream=False, length=None),
        "more than can be counted": said(length=(1 << 63) - 1, shape=[2]), "floats": said(dtype="float64"),
    }),
    "uniform": (lambda: rows()[:5, 0] + fc.random.uniform(5, seed=1), "elementwise.uniform.32", {
        "of a number": said(inputs=[1]),
        "without a key": said(inputs=[]), "of a stream": said(inputs=[0]), "as float64": said(dtype="float64"),
        "from another table": said(op="elementwise.uniform.64"),
    }),
    "spool": (lambda: fc.spool(numbers(), folder="/", limit=9), "view.spool", {
        "elsewhere": attrs(folder="x"), "not at all": attrs(limit=0)}),
    "product": (lambda: fc.nn.conv1d(items(2, 9), np.ones((4, 2, 3), "f4")), "contract.matmul", {
        "less deep": both(attrs(depth=1), said(shape=[2, 4, 7])), "deeper": attrs(depth=3), "no columns": attrs(columns=0),
        "a plain one": said(attrs={}), "the other way": lambda node: node["inputs"].reverse(),
        "another shape": said(shape=[4, 8]), "as a fold": said(op="fold.matmul"),
    }),
    "product beside a stream": (lambda: items(4, 8).sum() + fc.sum(np.ones(8, "f4")) + _convolved(), "contract.matmul", {
        "of a vector": said(inputs=[3, 9])}),
    "product of groups": (lambda: _others() + _convolved(2)[:, 0, 0], "contract.matmul", {
        "of other groups": said(inputs=[0, 10], shape=[2, 6]), "of two dtypes": said(inputs=[3, 10], dtype="float64"),
    }),
    "product of streams": (lambda: rows().T @ (rows() + 1), "fold.matmul", {
        "of nothing": said(inputs=[]), "of three": said(inputs=[0, 0, 0]), "of a number": said(inputs=[0, 2])}),
    "attention": (lambda: fc.nn.attention(items(4, 3, 8), items(2, 5, 8), items(2, 5, 6)), "contract.attention", {
        "windows without order": attrs(window=2), "a whole scale": attrs(scale=1), "two operands": said(inputs=[0, 1]),
        "others": said(inputs=[0, 1, 0]),
    }),
    "cov": (lambda: fc.cov(rows()), "fold.cov", {"a whole correction": attrs(correction=1), "floats": said(dtype="float32")}),
    "corrcoef": (lambda: fc.corrcoef(rows()), "fold.corrcoef", {"corrected": attrs(correction=real(1.0))}),
    "bincount": (lambda: fc.bincount(numbers("u1"), 7), "fold.bincount", {
        "of none": said(shape=[0]), "two axes": said(shape=[7, 1]), "as floats": said(dtype="float64")}),
    "top": (lambda: fc.top_k(numbers(), 3)[0], "fold.top_k_values", {
        "more than there are": said(shape=[13]), "none": said(shape=[0]), "indices": said(op="fold.top_k_indices")}),
    "quantile": (lambda: fc.quantile(numbers("f4"), [0.25, 0.5]), "fold.quantile", {
        "beyond": attrs(q=[real(0.25), real(1.5)]), "one more": attrs(q=[real(0.25)] * 3), "NaN": attrs(q=[real(0.5), real(np.nan)]),
        "as integers": said(dtype="int64"), "whole": attrs(q=[0, 1]),
    }),
    "quantiles of columns": (lambda: fc.quantile(rows(), [0.25, 0.5], axis=0), "fold.quantile", {
        "of numbers": said(shape=[2]), "other columns": said(shape=[2, 5]), "one more": said(shape=[3, 6]),
        "turned": said(shape=[6, 2]), "columns alone": said(shape=[6]),
    }),
    "sort": (lambda: fc.sort(rows()), "view.sort", {
        "beyond": attrs(axis=1), "both ways": attrs(descending=2), "as floats": said(dtype="float64"), "two": said(inputs=[0, 0]),
    }),
    "argsort": (lambda: fc.argsort(rows()), "view.argsort", {"as it is": said(dtype="float32")}),
    "search": (lambda: fc.searchsorted(np.arange(99, dtype="f4"), rows()), "view.searchsorted", {
        "no side": attrs(side="up"), "in a stream": said(inputs=[0, 0]), "alone": said(inputs=[0]),
    }),
    "lookup": (lambda: fc.take_along_axis(rows(), fc.argsort(rows())), "view.take_along_axis", {
        "beyond": attrs(axis=1), "by floats": said(inputs=[0, 0]), "other places": said(shape=[5]), "alone": said(inputs=[0]),
    }),
    "scatter": (lambda: fc.scatter_elements(rows(), fc.argsort(rows()), rows() + 1, 1), "view.scatter", {
        "beyond": attrs(axis=1), "otherwise": attrs(reduction="sum"), "other items": said(shape=[5]), "alone": said(inputs=[0]),
        "by floats": said(inputs=[0, 0, 0]),
    }),
    "first": (lambda: fc.first(rows()), "fold.first", {"another shape": said(shape=[7])}),
    "first beside nothing": (lambda: rows("f4", (0, 6)).sum(axis=0) + fc.first(rows()), "fold.first", {
        "of nothing": said(inputs=[0])}),
    "cov beside items": (lambda: items(3, 4).sum() + fc.cov(rows()), "fold.cov", {
        "of items": both(said(inputs=[0]), said(shape=[3, 4, 3, 4]))}),
    "bincount beside rows": (lambda: rows("u1").sum() + numbers().sum() + fc.bincount(numbers("u1"), 7), "fold.bincount", {
        "of rows": said(inputs=[0]), "of floats": said(inputs=[5])}),
    "histogram": (lambda: fc.histogram(numbers(), bins=[-1.0, 0, 3])[0], "fold.histogram", {
        "no edges": said(inputs=[0, 0]), "not equal": attrs(equal=0), "more": said(shape=[3]), "of nothing": said(inputs=[0]),
    }),
    "segments": (lambda: fc.segment_sum(rows(), numbers("u1"), 7), "fold.segment_sum", {
        "by floats": said(inputs=[0, 0]), "none": said(shape=[0, 6]), "other items": said(shape=[7, 5]),
        "fewer axes": said(shape=[7]), "the other way": said(inputs=[1, 1]),
    }),
    "shuffle": (lambda: fc.shuffle(rows(), seed=3), "rebatch.shuffle", {
        "no seed": attrs(seed=-1), "a seed of 65 bits": attrs(seed=1 << 64), "no block": attrs(block=0),
        "no window": attrs(window=0), "an epoch beyond": attrs(epoch=1 << 32), "no flag": attrs(inverse=2)}),
    "shuffle beside a scan": (lambda: fc.cumulative_sum(rows(), 0) + fc.shuffle(rows(), seed=3), "rebatch.shuffle", {
        "of a scan": said(inputs=[1])}),
    "scan": (lambda: fc.cumulative_sum(rows(), 1), "scan.cumulative_sum", {
        "beyond": attrs(axis=1), "negative": attrs(axis=-1), "another dtype": said(dtype="float64")}),
    "scan of a resident": (lambda: fc.cumulative_sum(rows().sum(axis=0)), "scan.cumulative_sum", {
        "along the stream": attrs(axis=None)}),
    "scan beside others": (lambda: fc.cumulative_max(rows("?"), 0) | fc.cumulative_max(rows("f2") > 0, 0), "scan.cumulative_max", {
        "bools": both(said(inputs=[0]), said(dtype="bool")), "halves": both(said(inputs=[4]), said(dtype="float16"))}),
    "recurrence": (lambda: fc.linear_recurrence(rows(), rows(), 1), "scan.linear_recurrence", {
        "beyond": attrs(axis=1), "one": said(inputs=[0]), "another dtype": said(dtype="float64")}),
    "ema": (lambda: fc.ema(rows(), 0.5), "scan.ema", {
        "no weight": attrs(alpha=0), "too much": attrs(alpha=real(1.5)), "a flag": attrs(alpha=True),
        "along an axis": attrs(axis=0), "NaN": attrs(alpha=real(np.nan)),
    }),
    "kernel": (lambda: divided(rows(), 2.0)[1], "kernel", {
        "a third result": said(result=2), "another function": said(kernel="0"), "of one": said(inputs=[0]),
        "another dtype": said(dtype="float64"), "of nothing": said(inputs=[]),
    }),
    "random": (lambda: fc.random.normal(5, seed=3) + 1, "random", {
        "a long seed": said(seed=1 << 64), "a negative seed": said(seed=-1), "another kind": said(distribution="cauchy")}),
    "host": (lambda: fc.host(np.sort, rows()), "host", {
        "an unknown policy": said(on_error="ignore"), "no file": said(on_error="dead_letter"),
        "a file for nothing": said(dead_letter="/x"), "skipping": said(on_error="skip"), "of nothing": said(inputs=[]),
        "a digest of bytes": said(digest=b""), "nothing bound": said(bind="text"),
    }),
    "dead letters": (lambda: fc.host(np.sort, rows(), on_error="dead_letter", dead_letter="/x"), "host", {
        "elsewhere": said(dead_letter="x")}),
    "scan function": (lambda: fc.scan(np.add, numbers(), init=0.0), "scan", {
        "no carry": said(init={}), "a carry of another shape": said(init={"bytes": bytes(16)}), "of nothing": said(inputs=[]),
        "a carry and more": said(init={"bytes": bytes(8), "code": ""}),
    }),
    "kernel scan": (lambda: fc.scan(remainder, rows(), init=0, axis=1), "kernel_scan", {
        "a carry of another shape": said(init={"bytes": bytes(24)}), "beyond": said(axis=1), "perhaps": said(associative=0),
        "another dtype": said(dtype="float64"), "another function": said(kernel="0"), "of nothing": said(inputs=[]),
    }),
    "kernel scan of a resident": (lambda: fc.scan(remainder, fc.constant(np.ones(3)), init=0), "kernel_scan", {
        "along the stream": said(axis=None)}),
    "opencl": (lambda: fc.opencl(TEXT, rows(), rows() + 1), "opencl", {
        "another text": said(text="00"), "another function": said(entry="g"), "of one": said(inputs=[0])}),
    "feed": (lambda: fc.feed(shape=(2,), dtype="f4") + 1, "feed", {
        "of known length": said(length=3), "no stream": said(stream=False)}),
    "iterate": (lambda: fc.iterate([], shape=(), dtype="f4"), "iterate", {
        "of known length": said(length=3), "no stream": said(stream=False), "some": said(items=1)}),
    "memory": (lambda: numbers(), "memory", {
        "longer": said(length=13), "of unknown length": said(length=None), "no stream": said(stream=False, length=None, shape=[12]),
        "both": said(blob="x"), "not there": said(bytes=None),
    }),
    "save": (lambda: rows() >> fc.save("/y.npy"), "save_npy", {
        "elsewhere": said(target="y.npy"), "upwards": said(target="/x/../y.npy"), "nowhere": said(target=""), "a folder": said(target="/"),
        "no path": said(path=""), "perhaps durable": said(durable=1), "of two": said(inputs=[0, 0]), "of nothing": said(inputs=[]),
        "no file can be called that": said(path="\0"), "another spec": said(shape=[5]),
    }),
    "save hdf5": (lambda: rows() >> fc.save("/y.h5", key="x"), "save_hdf5", {
        "no key": said(key=""), "a key upwards": said(key="../x"), "a number": said(key=3), "no path": said(target="y.h5"),
    }),
    "save zarr": (lambda: rows() >> fc.save("/y.zarr", chunk=5, overwrite=True), "save_zarr", {
        "no chunk": said(chunk=0), "half a chunk": said(chunk=1.5), "an odd flag": said(overwrite=2),
        "no path": said(target="y.zarr"),
    }),
    "save by name": (lambda: {"a": rows().sum(axis=0), "b": fc.constant(np.int8(3))} >> fc.save("/w.safetensors"), "save_safetensors", {
        "no list": said(tensors=3), "no names": said(tensors=[[3, "float32", [6]], ["b", "int8", []]]),
        "no dtype": said(tensors=[["a", "object", [6]], ["b", "int8", []]]), "fewer": said(tensors=[["a", "float32", [6]]]),
        "negative": said(tensors=[["a", "float32", [-6]], ["b", "int8", []]]), "no shape": said(tensors=[["a", "float32"]]),
        "the format's own name": said(tensors=[["__metadata__", "float32", [6]], ["b", "int8", []]]),
        "no name": said(tensor=3), "two": said(inputs=[0, 0]),
    }),
    "pack": (lambda: {"a": rows().sum(axis=0), "b": rows().sum()} >> fc.save("/w.safetensors"), "host.pack", {
        "a stream": said(inputs=[0]), "nothing": said(inputs=[]), "more": said(shape=[29])}),
    "pack rows": (lambda: {"a": rows(), "b": rows() > 0} >> fc.save("/y.parquet"), "host.pack_rows", {
        "residents": said(inputs=[]), "more": said(shape=[29])}),
    "save parquet": (lambda: {"a": rows(), "b": rows() > 0} >> fc.save("/y.parquet", chunk=7), "save_parquet", {
        "no list": said(columns=3), "no names": said(columns=[[3, "float32", [3]], ["b", "bool", [3]]]),
        "fewer": said(columns=[["a", "float32", [3]]]), "none": said(columns=[]), "two": said(inputs=[0, 0]),
        "no chunk": said(chunk=0), "text": said(chunk="7"), "no flag": said(overwrite=1), "no path": said(target="y.parquet"),
    }),
    "save zarr objects": (lambda: rows() >> fc.save("memory://b/y.zarr", chunk=7), "save_zarr_objects", {
        "no chunk": said(chunk=0), "text": said(chunk="7"), "no URL": said(target="y.zarr"), "a server": said(target="http://a/y.zarr"),
        "two": said(inputs=[0, 0]),
    }),
    "save object": (lambda: rows() >> fc.save("memory://b/y.npy"), "save_object", {
        "another URL": said(target="memory://b/z.npy"), "no URL": said(target="y.npy"), "no draft": said(written=3),
        "of nothing": said(written={"tag": "to_array"}), "two": said(inputs=[0, 0]),
    }),
    "save bfloat16": (lambda: rows("bfloat16") >> fc.save("/y.raw"), "save_raw", {"in a .npy file": said(tag="save_npy")}),
}  # fmt: skip


def every_value(made: Any) -> list[Any]:
    """Each value that an element is made of as a result of its own, so that none is missed when an operand changes."""
    with np.errstate(all="ignore"):
        values = [node.element for node in graph_of(made).nodes]
    last = [values[-1]] if made.inputs and values[-1] is made else []
    return [one for one in values if not isinstance(one, Destination)] + last


def numbered(node: dict[str, Any], renumber: Callable[[int], int]) -> None:
    node["inputs"] = [renumber(place) for place in node["inputs"]]


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name, (_, _, changes) in WRONG.items() for change in changes]
)
def test_what_no_call_makes_is_refused(name: str, change: str) -> None:
    build, tag, changes = WRONG[name]
    with np.errstate(all="ignore"):
        roots, store = every_value(build()), Store()
        data, bound = described(*roots, store=store), bindings(graph_of(*roots), [TEXT])
    place = [i for i, node in enumerate(data["nodes"]) if tag in (node["tag"], node.get("op"))][-1]
    rebuild_job(data, store.get, bound)
    node, op = data["nodes"][place], data["nodes"][place].get("op")
    # Each value is followed by where it goes.
    numbered(node, lambda one: one // 2)
    changes[change](node)
    numbered(node, lambda one: 2 * one)
    if node.get("op") != op:
        node["name"] = node["op"].split(".")[1]
    if place + 1 < len(data["nodes"]):
        data["nodes"][place + 1].update({key: node[key] for key in ("dtype", "shape", "stream", "length")})
    with pytest.raises(fc.CheckpointError) as caught:
        rebuild_job(data, store.get, bound)
    text = str(caught.value)
    assert len(text) < 2000
    assert not any(words in text for words in ("places or names", "other nodes"))
    assert caught.value.element in (None, node["name"])


def test_descending_edges_are_refused() -> None:
    data = described(fc.histogram(numbers(), bins=[-1.0, 0, 3])[0])
    (edges,) = [node for node in data["nodes"] if node["tag"] == "constant"]
    for wrong in ([-1.0, 4, 3], [-1.0, np.nan, 3]):
        edges["bytes"] = np.array(wrong).tobytes()
        with pytest.raises(fc.CheckpointError, match="edges"):
            rebuild_job(data, Store().get)


FILES: dict[str, Change] = {
    "no state": said(file={}),
    "a state more": lambda node: node["file"].update(inode=1),
    "another format": said(tag="npy"),
    "another dtype": lambda node: node["file"].update(stored="float64"),
    "an order that bytes do not have": lambda node: node["file"].update(stored=">int8"),
    "no dtype": lambda node: node["file"].update(stored=">"),
    "another offset": lambda node: node["file"].update(offset=1),
    "behind the end": lambda node: node["file"].update(offset=1 << 40),
    "items of nothing": lambda node: node["file"].update(item=[0]),
    "other items": lambda node: node["file"].update(item=[2]),
    "another file": lambda node: node["file"].update(path="/dev/zero"),
    "no file": lambda node: node["file"].update(path="x\0y"),
    "a relative folder": lambda node: node["file"].update(path="."),
    "several": said(tag="several"),
    "a size of text": lambda node: node["file"].update(size="3"),
}


@pytest.mark.parametrize("change", FILES)
def test_files_that_are_not_described_so(tmp_path: Path, change: str) -> None:
    (tmp_path / "x.raw").write_bytes(bytes(60))
    data = described(fc.open(tmp_path / "x.raw", dtype="f4", shape=(3,)))
    rebuild_job(data, Store().get)
    FILES[change](data["nodes"][0])
    with pytest.raises(fc.CheckpointError):
        rebuild_job(data, Store().get)
