"""Destinations as data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from flowcompute.checkpoint.job.fields import Fields
from flowcompute.checkpoint.job.parts.part import Describing, KeptNode, Part, Rebuilding
from flowcompute.checkpoint.store import DTYPES
from flowcompute.elements import MOST, MOST_AXES, Destination, Element
from flowcompute.elements.creation import MOST_PACKED
from flowcompute.objects import UrlError
from flowcompute.sinks import (
    CallbackSink,
    DiscardSink,
    FolderSink,
    Hdf5Sink,
    MemorySink,
    NpySink,
    ParquetSink,
    RawSink,
    SafetensorsSink,
    SavedArray,
    StoredSink,
    UploadSink,
    ZarrObjectsSink,
    ZarrSink,
    draft_target,
)

Stored = TypeVar("Stored", NpySink, RawSink, SafetensorsSink, ZarrSink, Hdf5Sink, ParquetSink)
Folder = TypeVar("Folder", ZarrSink, ParquetSink)


def _check_input(node: KeptNode, fields: Fields) -> None:
    if len(node.inputs) != 1 or isinstance(node.inputs[0], Destination):
        fields.wrong("inputs", "one element with a value")


def _bound(sink: Destination, node: KeptNode, fields: Fields) -> Element:
    _check_input(node, fields)
    return sink.bind(node.inputs[0])


def _describe_file(sink: StoredSink, _: Describing) -> dict[str, Any]:
    return {"path": str(sink.path), "target": str(sink.target), "durable": bool(sink.durable)}


def _file(kind: type[Stored], fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Stored:
    path, target = fields.text("path"), fields.text("target")
    if not os.path.basename(target) or target != os.path.abspath(target):
        fields.wrong("target", "the absolute path of the file")
    sink = kind(path, name=node.given, durable=fields.flag("durable"))
    # Settled when the job was composed, whatever the folder is now. Who made the checkpoint has chosen it.
    sink.freeze_fields(target=target, allow=rebuilding.allow)
    return sink


def _rebuild_npy(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    return _bound(_file(NpySink, fields, node, rebuilding), node, fields)


def _rebuild_raw(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    return _bound(_file(RawSink, fields, node, rebuilding), node, fields)


def _describe_safetensors(sink: SafetensorsSink, describing: Describing) -> dict[str, Any]:
    tensors = None if sink.tensors is None else _arrays(sink.tensors)
    return {**_describe_file(sink, describing), "tensor": sink.tensor, "tensors": tensors}


def _arrays(arrays: Sequence[SavedArray]) -> list[list[Any]]:
    return [[one.name, one.dtype.name, list(one.shape)] for one in arrays]


def _rebuild_safetensors(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    kind, tensors = SafetensorsSink, fields.maybe("tensors", lambda key: fields.items(key, MOST_PACKED))
    sink = _file(kind, fields, node, rebuilding)
    sink = sink.with_tensor(fields.text("tensor"))
    if tensors is not None:
        sink = sink.with_tensors([_array(fields, "tensors", one) for one in tensors])
    _check_input(node, fields)
    return sink.bound_to(node.inputs[0])


def _array(fields: Fields, key: str, one: Any) -> SavedArray:
    parts = one if isinstance(one, list | tuple) and len(one) == 3 else ("", "", ())
    name, dtype, shape = parts
    known = isinstance(name, str) and isinstance(dtype, str) and dtype in DTYPES
    if not known or not isinstance(shape, list | tuple) or len(shape) > MOST_AXES:
        fields.wrong(key, "names, dtypes and shapes")
    if not all(type(size) is int and 0 <= size < MOST for size in shape):
        fields.wrong(key, "shapes")
    return SavedArray(name, DTYPES[dtype], tuple(shape))


def _describe_hdf5(sink: Hdf5Sink, describing: Describing) -> dict[str, Any]:
    return {**_describe_file(sink, describing), "key": str(sink.key)}


def _rebuild_hdf5(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    kind = Hdf5Sink
    sink, key = _file(kind, fields, node, rebuilding), fields.text("key")
    # Checked as a key that somebody gives.
    sink.freeze_fields(key=Hdf5Sink(sink.path, key=key).key)
    return _bound(sink, node, fields)


def _describe_folder(sink: FolderSink, describing: Describing) -> dict[str, Any]:
    return {**_describe_file(sink, describing), "chunk": sink.chunk, "overwrite": bool(sink.overwrite)}


def _folder(kind: type[Folder], fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Folder:
    sink = _file(kind, fields, node, rebuilding)
    chunk = fields.maybe("chunk", lambda key: fields.whole(key, least=1))
    sink.freeze_fields(chunk=chunk, overwrite=fields.flag("overwrite"))
    return sink


def _rebuild_zarr(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    return _bound(_folder(ZarrSink, fields, node, rebuilding), node, fields)


def _describe_zarr_objects(sink: ZarrObjectsSink, _: Describing) -> dict[str, Any]:
    return {"target": str(sink.path), "chunk": sink.array.chunk}


def _rebuild_zarr_objects(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    url, chunk = fields.text("target"), fields.maybe("chunk", lambda key: fields.whole(key, least=1))
    try:
        sink = ZarrObjectsSink(url, chunk=chunk, name=node.given)
    except UrlError:
        fields.wrong("target", "the URL of an array in a store")
    sink.freeze_fields(allow=rebuilding.allow)
    return _bound(sink, node, fields)


def _describe_upload(sink: UploadSink, describing: Describing) -> dict[str, Any]:
    part = SINKS[type(sink.file)]
    return {"target": str(sink.path), "written": {"tag": part.tag, **part.describe(sink.file, describing)}}


def _rebuild_upload(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    url, file = fields.text("target"), Fields(fields.take("written"), "a draft")
    part = _BY_TAG[file.choice("tag", tuple(_BY_TAG))]
    made = part.rebuild(file, node, rebuilding)
    file.close()
    assert isinstance(made, StoredSink)
    # The name of a draft follows from the URL: a checkpoint must not choose it.
    if made.target != draft_target(url):
        fields.wrong("target", "the URL that the draft is of")
    try:
        sink = UploadSink(url, made, name=node.given)
    except UrlError:
        fields.wrong("target", "the URL of an object in a store")
    sink.freeze_fields(allow=rebuilding.allow)
    return sink.of_bound(made)


def _describe_parquet(sink: ParquetSink, describing: Describing) -> dict[str, Any]:
    return {**_describe_folder(sink, describing), "columns": _arrays(sink.columns)}


def _rebuild_parquet(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    kind, columns = ParquetSink, fields.items("columns", MOST_PACKED)
    sink = _folder(kind, fields, node, rebuilding)
    sink = sink.with_columns([_array(fields, "columns", one) for one in columns])
    _check_input(node, fields)
    return sink.bound_to(node.inputs[0])


def _nothing(_: Destination, __: Describing) -> dict[str, Any]:
    return {}


def _rebuild_memory(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    return _bound(MemorySink(name=node.given), node, fields)


def _rebuild_discard(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    return _bound(DiscardSink(name=node.given), node, fields)


def _describe_callback(sink: CallbackSink, _: Describing) -> dict[str, Any]:
    return {"bind": "function", "labels": bool(sink.labels)}


def _rebuild_callback(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    return _bound(CallbackSink(node.bound, labels=fields.flag("labels"), name=node.given), node, fields)


SINKS: dict[type[Element], Part] = {
    NpySink: Part("save_npy", _describe_file, _rebuild_npy),
    RawSink: Part("save_raw", _describe_file, _rebuild_raw),
    SafetensorsSink: Part("save_safetensors", _describe_safetensors, _rebuild_safetensors),
    Hdf5Sink: Part("save_hdf5", _describe_hdf5, _rebuild_hdf5),
    ZarrSink: Part("save_zarr", _describe_folder, _rebuild_zarr),
    ParquetSink: Part("save_parquet", _describe_parquet, _rebuild_parquet),
    ZarrObjectsSink: Part("save_zarr_objects", _describe_zarr_objects, _rebuild_zarr_objects),
    UploadSink: Part("save_object", _describe_upload, _rebuild_upload),
    MemorySink: Part("to_array", _nothing, _rebuild_memory),
    DiscardSink: Part("discard", _nothing, _rebuild_discard),
    CallbackSink: Part("callback", _describe_callback, _rebuild_callback, "function"),
}

_BY_TAG = {SINKS[kind].tag: SINKS[kind] for kind in (NpySink, RawSink, SafetensorsSink, Hdf5Sink)}
"""Kinds of files that an object may be."""
