"""Sources as data."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.fields import MOST_NODES, Fields, refuse
from flowcompute.checkpoint.job.fingerprint import (
    array_sample,
    changed_file,
    content_blocks,
    described_file,
    described_path,
    read_state,
)
from flowcompute.checkpoint.job.parts.part import BLOB_BYTES, Describing, KeptNode, Part, Rebuilding
from flowcompute.checkpoint.store import DTYPES
from flowcompute.elements import Constant, Element
from flowcompute.elements.policies import ErrorPolicy, parse_policy
from flowcompute.errors import CheckpointError
from flowcompute.files import FILES, is_url, shown
from flowcompute.model_files import NamedWeights, PlacedWeight, Weight, WeightFile, open_weight_file, weights
from flowcompute.sources import (
    ColumnSource,
    FeedSource,
    Hdf5ChunkedSource,
    Hdf5Source,
    IterateSource,
    MemorySource,
    NpySource,
    RawSource,
    SafetensorsSource,
    SeveralSource,
    StoredSource,
    ZarrSource,
    open_hdf5,
    open_parts,
    open_zarr,
)
from flowcompute.spec import BFLOAT16, Stream
from flowcompute.tokens import FileTokens, IteratedTexts, IteratedTokens, TextFile, TextTokenizer

# -- files -------------------------------------------------------------------------------------------


def _stored(source: StoredSource, describing: Describing, files: int = 1) -> dict[str, Any]:
    """Describe a file, of a source of so many, and how its bytes are read."""
    data = described_file(source, content_blocks(files) if describing.contents else None)
    if isinstance(source, RawSource):
        layout = source.layout
        data |= {"stored": _stored_name(layout.dtype), "item": list(layout.item_shape), "offset": layout.offset}
    if isinstance(source, Hdf5Source | SafetensorsSource):
        data["key"] = str(source.key)
    return data


def _stored_name(dtype: np.dtype) -> str:
    return dtype.name if dtype == BFLOAT16 or dtype.isnative else f">{dtype.name}"


def _kept_path(fields: Fields, rebuilding: Rebuilding) -> str:
    """Return the path of a file that is still in the state that was kept. No other one is opened."""
    path, state = read_state(fields)
    # A file that cannot be read at all is told by the source itself.
    there = is_url(path) or os.path.exists(path)
    if there and (changed := changed_file(path, state, accept_touched=rebuilding.accept_touched)):
        # The path is told whole.
        raise CheckpointError(
            "cannot read a file that is not as it was when the job was frozen",
            got="; ".join(changed),
            hint="put it back, or begin anew",
        )
    return path


def _kept_paths(described: Sequence[object], rebuilding: Rebuilding) -> list[str]:
    """Return the paths of files that are still in the state that was kept."""
    paths = []
    for data in described:
        file = Fields(data, "a file")
        paths.append(_kept_path(file, rebuilding))
        file.close()
    return paths


def _npy(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> StoredSource:
    path = _kept_path(fields, rebuilding)
    return NpySource(path, dtype=BFLOAT16 if node.spec.dtype == BFLOAT16 else None, name=node.given)


def _raw(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> StoredSource:
    path = _kept_path(fields, rebuilding)
    name = fields.text("stored")
    dtype = DTYPES.get(name.removeprefix(">"))
    if dtype is None or (name.startswith(">") and (dtype == BFLOAT16 or dtype.itemsize == 1)):
        fields.wrong("stored", "a dtype, perhaps in the other byte order")
    stored = dtype.newbyteorder() if name.startswith(">") else dtype
    return RawSource(path, dtype=stored, shape=fields.wholes("item"), offset=fields.whole("offset"), name=node.given)


def _safetensors(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> StoredSource:
    path = _kept_path(fields, rebuilding)
    return SafetensorsSource(path, key=fields.text("key"), name=node.given)


def _hdf5(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> StoredSource:
    source = open_hdf5(_kept_path(fields, rebuilding), fields.text("key"), name=node.given, files=FILES)
    if not isinstance(source, Hdf5Source):
        fields.wrong("key", "a dataset whose bytes lie together")
    return source


_FORMATS: dict[type[StoredSource], Callable[[Fields, KeptNode, Rebuilding], StoredSource]] = {
    Hdf5Source: _hdf5,
    NpySource: _npy,
    RawSource: _raw,
    SafetensorsSource: _safetensors,
}
"""Rebuilds a source of each format of files. A new format has its line here."""

_BY_NAME = {source.format: rebuild for source, rebuild in _FORMATS.items()}


def _describe_file(source: StoredSource, describing: Describing) -> dict[str, Any]:
    return {"file": _stored(source, describing)}


def _part(format: str) -> Part:
    def rebuild(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
        return _rebuild_file(fields.take("file"), format, node, rebuilding)

    return Part(format, _describe_file, rebuild)


def _rebuild_file(data: object, format: str, node: KeptNode, rebuilding: Rebuilding) -> StoredSource:
    fields = Fields(data, "a file")
    source = _BY_NAME[format](fields, node, rebuilding)
    fields.close()
    return source


def _describe_several(source: SeveralSource, describing: Describing) -> dict[str, Any]:
    parts = source.sources
    return {"files": [{"format": part.format, "file": _stored(part, describing, len(parts))} for part in parts]}


def _rebuild_several(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    parts = []
    for data in fields.items("files", MOST_NODES):
        one = Fields(data, "a file")
        parts.append(_rebuild_file(one.take("file"), one.choice("format", tuple(_BY_NAME)), node, rebuilding))
        one.close()
    if not parts:
        fields.wrong("files", "at least one file")
    return SeveralSource(parts, name=node.given)


def _describe_chunks(source: Hdf5ChunkedSource, describing: Describing) -> dict[str, Any]:
    contents = content_blocks(1) if describing.contents else None
    return {"file": described_path(source.path, source.files, contents), "key": str(source.key)}


def _rebuild_chunks(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    file = Fields(fields.take("file"), "a file")
    path = _kept_path(file, rebuilding)
    file.close()
    return open_hdf5(path, fields.text("key"), name=node.given, files=FILES)


def _describe_column(source: ColumnSource, describing: Describing) -> dict[str, Any]:
    contents = content_blocks(len(source.parts)) if describing.contents else None
    files = [described_path(part.path, source.files, contents) for part in source.parts]
    data = {"file": files[0], "kind": source.kind, "column": source.column.name, "fill": source.fill}
    return data | ({"more": files[1:]} if files[1:] else {})


def _rebuild_column(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    more = fields.items("more", MOST_NODES) if "more" in fields else ()
    paths = _kept_paths((fields.take("file"), *more), rebuilding)
    kind, column, fill = fields.choice("kind", ("parquet", "arrow")), fields.text("column"), fields.take("fill")
    if not isinstance(fill, int | float | None):
        fields.wrong("fill", "a number, or none")
    table = open_parts(paths, kind, fill=fill, name=node.given, files=FILES)
    if column not in table:
        fields.wrong("column", "a column of the file")
    return table[column]


def _describe_zarr(source: ZarrSource, describing: Describing) -> dict[str, Any]:
    contents = content_blocks(1) if describing.contents else None
    file = described_path(source.metadata, source.files, contents)
    return {"file": file, "chunks": source.state.chunks.digest}


def _rebuild_zarr(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    file = Fields(fields.take("file"), "a file")
    path = _kept_path(file, rebuilding)
    file.close()
    source = open_zarr(os.path.dirname(path), None, name=node.given, files=FILES)
    if source.state.chunks.digest != fields.text("chunks"):
        raise CheckpointError(
            "cannot read an array that is not as it was when the job was frozen",
            got=f"the files of its chunks have changed: {shown(source.path)}",
            hint="put them back, with their times, or begin anew",
        )
    return source


# -- memory ------------------------------------------------------------------------------------------


def _describe_array(array: np.ndarray, dtype: np.dtype, describing: Describing) -> dict[str, Any]:
    if array.nbytes > BLOB_BYTES:
        return {"bind": "array", "sample": array_sample(array)}
    return describing.array(np.asarray(array, dtype))


def _rebuild_array(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> np.ndarray:
    if "sample" not in fields:
        return rebuilding.array(fields, node.spec)
    sample = fields.text("sample")
    array = np.asarray(node.bound)
    shape = node.spec.full_shape
    if array.shape != shape or array.dtype.newbyteorder("=") != node.spec.dtype or array_sample(array) != sample:
        refuse(
            f"cannot go on with another array for {node.name!r}",
            expected=str(node.spec),
            got=f"{array.dtype.name}{array.shape}, of other numbers" if array.shape == shape else str(array.shape),
            hint=f"bind={{{node.name!r}: array}} with the very numbers, in any layout",
        )
    return array


def _describe_memory(source: MemorySource, describing: Describing) -> dict[str, Any]:
    return _describe_array(source.array, source.dtype, describing)


def _rebuild_memory(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    # A view of its own: sources of the same array object are read as one.
    return MemorySource(_rebuild_array(fields, node, rebuilding).view(), name=node.given)


def _describe_constant(constant: Constant, describing: Describing) -> dict[str, Any]:
    return _describe_array(constant.value, constant.dtype, describing)


def _rebuild_constant(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    return Constant(_rebuild_array(fields, node, rebuilding), name=node.given)


def _describe_weight(weight: Weight, describing: Describing) -> dict[str, Any]:
    file = weight.file
    if file.path not in describing.files:
        describing.files[file.path] = described_file(file, content_blocks(1) if describing.contents else None)
    return {"file": dict(describing.files[file.path]), "tensor": weight.tensor.name, "raw": weight.is_raw}


def _opened_weights(path: str, rebuilding: Rebuilding) -> NamedWeights:
    """Return the tensors of a file, which is opened once a job."""
    if path not in rebuilding.weights:
        rebuilding.weights[path] = weights(path)
    return rebuilding.weights[path]


def _rebuild_weight(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    file = Fields(fields.take("file"), "a file")
    path = _kept_path(file, rebuilding)
    file.close()
    opened, name = _opened_weights(path, rebuilding), fields.text("tensor")
    if name not in opened:
        refuse("cannot find this tensor in its file", expected=name)
    made = opened.raw(name) if fields.flag("raw") else opened[name]
    if not isinstance(made, Weight):
        fields.wrong("raw", "True for a tensor that is decoded")
    # Kept nodes have names and lines of their own.
    twin = copy.copy(made)
    twin.freeze_fields(name=node.given)
    return twin


def _describe_placed(weight: PlacedWeight, describing: Describing) -> dict[str, Any]:
    kept = _describe_weight(weight, describing)
    return {"file": kept["file"], "tensor": kept["tensor"], "offset": weight.tensor.offset}


def _rebuild_placed(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    file = Fields(fields.take("file"), "a file")
    path = _kept_path(file, rebuilding)
    file.close()
    name, offset = fields.text("tensor"), fields.whole("offset")
    if node.spec.is_stream:
        refuse("cannot make a stream of a tensor", expected="a resident value", got=str(node.spec))
    made = PlacedWeight(open_weight_file(path), name, node.spec.dtype, node.spec.shape, offset)
    made.freeze_fields(name=node.given)
    return made


# -- given by hand -----------------------------------------------------------------------------------


def describe_policy(policy: ErrorPolicy) -> dict[str, Any]:
    """Describe what becomes of records that fail, as plain data."""
    return {"on_error": policy.on_error, "dead_letter": policy.path}


def read_policy(fields: Fields, rebuilding: Rebuilding) -> ErrorPolicy:
    """Read what becomes of records that fail."""
    policy = parse_policy(fields.text("on_error"), fields.maybe("dead_letter", fields.text), "on_error")
    if policy.path is not None and policy.path != fields.text("dead_letter"):
        fields.wrong("dead_letter", "an absolute path")
    return replace(policy, allow=rebuilding.allow)


def _describe_feed(_: FeedSource, __: Describing) -> dict[str, Any]:
    return {}


def _rebuild_feed(_: Fields, node: KeptNode, __: Rebuilding) -> Element:
    if node.spec.stream != Stream(None):
        refuse("cannot make a feed again of known length", expected="a stream of unknown length", got=str(node.spec))
    return FeedSource(node.spec, name=node.given)


def _describe_iterate(source: IterateSource, _: Describing) -> dict[str, Any]:
    return {"bind": "iterable", "items": source.items, **describe_policy(source.policy)}


def _rebuild_iterate(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    return IterateSource(
        node.bound,
        shape=node.spec.shape,
        dtype=node.spec.dtype,
        items=fields.flag("items"),
        policy=read_policy(fields, rebuilding),
        name=node.given,
    )


# -- texts -------------------------------------------------------------------------------------------


def _describe_tokens(source: FileTokens, describing: Describing) -> dict[str, Any]:
    texts, contents = source.texts, content_blocks(2) if describing.contents else None
    data = {"file": described_path(texts.path, texts.files, contents), "more": [described_file(source.file, contents)]}
    return {**data, "key": texts.key, "longest": texts.longest}


def _rebuild_tokens(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    path, model = _kept_paths((fields.take("file"), *fields.items("more", 1)), rebuilding)
    texts = TextFile(path, fields.maybe("key", fields.text), fields.whole("longest", 1))
    return FileTokens(texts, *_tokenizer_of(model, rebuilding), name=node.given)


def _describe_iterated(source: IteratedTokens, describing: Describing) -> dict[str, Any]:
    model = described_file(source.file, content_blocks(1) if describing.contents else None)
    return {"bind": "iterable", "file": model, "longest": source.texts.longest}


def _rebuild_iterated(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    (model,) = _kept_paths((fields.take("file"),), rebuilding)
    texts, longest = node.bound, fields.whole("longest", 1)
    if isinstance(texts, str | bytes) or not hasattr(texts, "__iter__"):
        refuse("cannot go on with these texts", expected="an iterable of texts", got=type(texts).__name__)
    return IteratedTokens(IteratedTexts(texts, longest), *_tokenizer_of(model, rebuilding), name=node.given)


def _tokenizer_of(model: str, rebuilding: Rebuilding) -> tuple[TextTokenizer, WeightFile]:
    """Return the tokenizer of a model, and the file that it lies in."""
    opened = _opened_weights(model, rebuilding)
    return TextTokenizer(opened.metadata, opened.path), opened.file


SOURCES: dict[type[Element], Part] = {
    **{source: _part(source.format) for source in _FORMATS},
    Hdf5ChunkedSource: Part("hdf5_chunks", _describe_chunks, _rebuild_chunks),
    ColumnSource: Part("column", _describe_column, _rebuild_column),
    ZarrSource: Part("zarr", _describe_zarr, _rebuild_zarr),
    SeveralSource: Part("several", _describe_several, _rebuild_several),
    MemorySource: Part("memory", _describe_memory, _rebuild_memory, "array"),
    Constant: Part("constant", _describe_constant, _rebuild_constant, "array"),
    Weight: Part("weight", _describe_weight, _rebuild_weight),
    PlacedWeight: Part("placed", _describe_placed, _rebuild_placed),
    FeedSource: Part("feed", _describe_feed, _rebuild_feed),
    IterateSource: Part("iterate", _describe_iterate, _rebuild_iterate, "iterable"),
    FileTokens: Part("tokens", _describe_tokens, _rebuild_tokens),
    IteratedTokens: Part("iterated_tokens", _describe_iterated, _rebuild_iterated, "iterable"),
}
