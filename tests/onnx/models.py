"""Small models, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import flowcompute as fc

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node whose names stand in a line; "_" is an optional one that is left out."""
    names = [["" if one == "_" else one for one in names.split()] for names in (inputs, outputs)]
    return helper.make_node(op, *names, name=f"{op.lower()}_{outputs.split(maxsplit=1)[0]}", **attributes)


def port(name: str, shape: Sequence[Any] | None, dtype: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[str] = ("y",),
    opset: int = 18,
    values: Mapping[str, Any] | None = None,
    **options: Any,
) -> ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (values or {}).items()]
    made = [helper.make_tensor_value_info(name, 0, None) for name in outputs]
    for one in made:
        one.ClearField("type")
    graph = helper.make_graph(list(nodes), "made", list(inputs), made, tensors)
    imports = [helper.make_opsetid("", opset), *options.pop("domains", ())]
    return helper.make_model(graph, opset_imports=imports, **options)


def one(op: str, arrays: Sequence[Any], opset: int = 18, device: str = "numpy", **attributes: Any) -> Any:
    """What a model of one node makes of arrays."""
    given = [np.asarray(one) for one in arrays]
    names = [f"x{place}" for place in range(len(given))]
    ports = [
        port(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype))
        for name, array in zip(names, given, strict=True)
    ]
    made = model([node(op, " ".join(names), "y", **attributes)], ports, opset=opset)
    return fc.onnx.load(made)(*given).resolve(device=device, progress=False)
