"""The operators of ONNX: one record each, in tables by family."""

from __future__ import annotations

from flowcompute.onnx.operators import control_flow, refusing, sequences
from flowcompute.onnx.operators.arrays import ARRAYS, ARRAYS_POINTWISE
from flowcompute.onnx.operators.layers import LAYERS
from flowcompute.onnx.operators.microsoft import MICROSOFT, grouped_attention, multi_head_attention
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, OnnxNode, Operator
from flowcompute.onnx.operators.shape_numbers import as_dtype
from flowcompute.onnx.problems import Refusal

OPERATORS: tuple[Operator, ...] = (
    *ARRAYS,
    *LAYERS,
    *MICROSOFT,
    *control_flow.OPERATORS,
    *sequences.OPERATORS,
    *refusing.OPERATORS,
)
"""All records. Several of one operator are for different opsets."""

POINTWISE = frozenset(one.name for one in ARRAYS_POINTWISE)
"""Operators whose inputs broadcast, and that compute each number by itself."""

LATEST = 28
"""The last version of ONNX's own operators that the records know."""

_BY_NAME: dict[tuple[str, str], list[Operator]] = {}
for _one in OPERATORS:
    _BY_NAME.setdefault((_one.domain, _one.name), []).append(_one)
_DOMAINS = {_one.domain for _one in OPERATORS}

DEFINED = {(_one.domain, _one.name) for _one in OPERATORS if _one.by_definition}
"""Operators that are built of those by which the standard defines them."""


def record_of(node: OnnxNode) -> Operator:
    """Return the record of a node's operator.

    Raises:
        Refusal: if it has none in this version, or its record says why it cannot be computed.
    """
    found = _BY_NAME.get((node.domain, node.op))
    if found is None and node.domain not in _DOMAINS:
        raise Refusal("domain", f"operators of {node.domain!r}", "export the model with ONNX's own operators")
    if found is None:
        raise Refusal("operator", "no operator of this name", "export the model with operators that docs/onnx.md lists")
    if node.domain == "" and node.opset > LATEST:
        raise Refusal("opset", f"opset {node.opset} is not known", f"export the model with opset {LATEST} or before")
    for record in found:
        if record.covers(node.opset):
            if record.build is None and not record.by_definition:
                raise Refusal(record.reason, "not supported", record.hint)
            return record
    raise Refusal("opset", f"not defined in opset {node.opset}", "export the model with a later opset")


__all__ = [
    "DEFINED",
    "LATEST",
    "OPERATORS",
    "POINTWISE",
    "REQUIRED",
    "NodeCall",
    "OnnxNode",
    "Operator",
    "as_dtype",
    "grouped_attention",
    "multi_head_attention",
    "record_of",
]
