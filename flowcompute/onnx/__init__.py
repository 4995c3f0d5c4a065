"""ONNX models as functions of elements; needs the extra `flowcompute[onnx]`."""

from flowcompute.onnx.graphs import Port
from flowcompute.onnx.model_description import describe
from flowcompute.onnx.onnx_model import OnnxModel, OnnxOutputs, load
from flowcompute.onnx.problems import REASONS, UnsupportedError, UnsupportedNode
from flowcompute.onnx.sessions import Session

__all__ = [
    "REASONS",
    "OnnxModel",
    "OnnxOutputs",
    "Port",
    "Session",
    "UnsupportedError",
    "UnsupportedNode",
    "describe",
    "load",
]
