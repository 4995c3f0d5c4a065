"""ONNX files read into records."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Any

from flowcompute.elements import Constant, user_site
from flowcompute.errors import SourceError
from flowcompute.files import FILES, shown
from flowcompute.imports import dataclass
from flowcompute.onnx._onnx import is_model, parsed_model, require_onnx
from flowcompute.onnx.graphs import GraphReader, OnnxGraph, opsets_of
from flowcompute.onnx.tensors import ExternalData, NarrowTensor, damaged, no_external, text_of, without_tensors
from flowcompute.sources import absolute, probe, why_not_mapped

MOST_BYTES = 1 << 31
"""Of a file without its external data: no protobuf is larger."""


@dataclass(frozen=True)
class OnnxFile:
    """Contents of a file.

    Attributes:
        path: absolute; empty where there is none.
        name: what errors call it.
        graph: its main graph.
        functions: of the model, by domain and name.
        opsets: version of each domain.
        weights_bytes: of initial values.
    """

    path: str
    name: str
    graph: OnnxGraph
    functions: Mapping[tuple[str, str], OnnxGraph]
    opsets: Mapping[str, int]
    weights_bytes: int


def read_model(given: Any) -> OnnxFile:
    """Read a model from a path, bytes or an `onnx.ModelProto`.

    Raises:
        SourceError: if it cannot be read, or is not sound.
        SpecError: if it is none of these.
    """
    require_onnx()
    if isinstance(given, bytes | bytearray | memoryview):
        return _read(parsed_model(bytes(given), "these bytes"), "")
    if is_model(given):
        return _read(given, "")
    path = absolute(given, None)
    # Whoever writes a file does not know the mark, and cannot pretend to have been read here.
    mark = secrets.token_hex(16)
    return _read(parsed_model(_without_tensors(path, mark), shown(path)), path, mark)


def _without_tensors(path: str, mark: str) -> bytes:
    """Return the bytes of a file without its large tensors, which are mapped later."""
    with probe(path, element=None, site=user_site(), files=FILES) as (handle, fingerprint):
        if fingerprint.size > MOST_BYTES:
            raise SourceError(
                f"cannot read {shown(path)}: it is too large",
                site=user_site(),
                expected="at most 2 GiB without external data",
                got=f"{fingerprint.size} bytes",
            )
        if not fingerprint.size:
            return b""
        if why_not_mapped(path, FILES.status(handle)) is not None:
            read = bytearray(fingerprint.size)
            return without_tensors(memoryview(read)[: FILES.read_into(handle, memoryview(read), 0)], mark)
        with FILES.map_read(handle, fingerprint.size) as mapping, memoryview(mapping) as data:
            return without_tensors(data, mark)


def _read(proto: Any, path: str, mark: str = "") -> OnnxFile:
    opsets = opsets_of(proto.opset_import)
    if not proto.HasField("graph"):
        raise damaged("it has no graph")
    reader = GraphReader(opsets, ExternalData(path, mark) if path else no_external)
    functions = {(one.domain, one.name): reader.function(one) for one in proto.functions}
    graph = reader.graph(proto.graph)
    held = [one.packed if isinstance(one, NarrowTensor) else one for one in graph.values.values()]
    weights = sum(one.value.nbytes for one in held if isinstance(one, Constant))
    title = text_of(proto.graph.name)
    name = os.path.basename(path) or (title if title.isprintable() else "") or "the model"
    return OnnxFile(path, name, graph, functions, opsets, weights)
