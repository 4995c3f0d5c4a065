"""What `flowcompute inspect model.onnx` prints."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from flowcompute.onnx.graph_builder import found_problems
from flowcompute.onnx.graphs import Port
from flowcompute.onnx.model_reader import read_model

_INDENT = "            "


def describe(path: str | os.PathLike[str] | bytes | Any) -> str:
    """Describe a model in a few lines: ports, opsets, operators, bytes of weights, and all that is not supported.

    Args:
        path: as of `fc.onnx.load`.

    Raises:
        SourceError: if it cannot be read, or is not sound.
    """
    file = read_model(path)
    operators = Counter(node.full_op for node in file.graph.nodes).most_common()
    problems = list(found_problems(file.graph, file.functions))
    domains = ", ".join(f"{domain or 'ONNX'} opset {version}" for domain, version in file.opsets.items())
    lines = {
        "inputs": _ports(file.graph.inputs),
        "outputs": _ports(file.graph.outputs),
        "opset": domains,
        "operators": f"{sum(count for _, count in operators)} nodes: "
        + ", ".join(f"{count} {name}" for name, count in operators),
        "weights": f"{file.weights_bytes:,} bytes",
        "missing": f"\n{_INDENT}".join(f"{one.node}: {one.op}: {one.text} [{one.reason}]" for one in problems)
        or "nothing",
    }
    return "\n".join([file.path or file.name, *(f"  {label:<9} {text}" for label, text in lines.items())])


def _ports(ports: tuple[Port, ...]) -> str:
    return f"\n{_INDENT}".join(
        f"{port.name} {'?' if port.dtype is None else port.dtype.name}{_shape(port)}" for port in ports
    )


def _shape(port: Port) -> str:
    if port.shape is None:
        return ""
    return f"({', '.join('?' if size is None else str(size) for size in port.shape)})"
