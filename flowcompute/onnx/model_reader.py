"""ONNX files read into records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowcompute.elements import Constant, user_site
from flowcompute.errors import SourceError
from flowcompute.files import FILES, shown
from flowcompute.onnx._onnx import is_model, parsed_model, require_onnx
from flowcompute.onnx.external_data import ExternalData
from flowcompute.onnx.graphs import GraphReader, OnnxGraph, opsets_of
from flowcompute.onnx.model_tensors import damaged, no_external, text_of
from flowcompute.sources import absolute, probe

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
    return _read(parsed_model(_bytes_of(path), shown(path)), path)


def _bytes_of(path: str) -> bytes:
    with probe(path, element=None, site=user_site(), files=FILES) as (handle, fingerprint):
        if fingerprint.size > MOST_BYTES:
            raise SourceError(
                f"cannot read {shown(path)}: it is too large",
                site=user_site(),
                expected="at most 2 GiB without external data",
                got=f"{fingerprint.size} bytes",
            )
        data = bytearray(fingerprint.size)
        return bytes(data[: FILES.read_into(handle, memoryview(data), 0)])


def _read(proto: Any, path: str) -> OnnxFile:
    opsets = opsets_of(proto.opset_import)
    if not proto.HasField("graph"):
        raise damaged("it has no graph")
    reader = GraphReader(opsets, ExternalData(os.path.dirname(path)) if path else no_external)
    functions = {(one.domain, one.name): reader.function(one) for one in proto.functions}
    graph = reader.graph(proto.graph)
    weights = sum(one.value.nbytes for one in graph.values.values() if isinstance(one, Constant))
    title = text_of(proto.graph.name)
    name = os.path.basename(path) or (title if title.isprintable() else "") or "the model"
    return OnnxFile(path, name, graph, functions, opsets, weights)
