"""The one import of onnx, which is needed for ONNX files alone. Without it the first file says what to install."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowcompute.errors import SourceError

try:
    from google.protobuf.message import DecodeError
    from onnx import AttributeProto, FunctionProto, ModelProto, TypeProto, defs
except ImportError as missing:
    _problem: ImportError | None = missing
else:
    _problem = None


def require_onnx() -> None:
    """Check that onnx is installed.

    Raises:
        SourceError: where it is not.
    """
    if _problem is not None:
        raise SourceError(
            "cannot read an ONNX file: onnx is not installed",
            element="onnx",
            got=str(_problem),
            hint="run pip install 'flowcompute[onnx]'",
        ) from _problem


def is_model(value: object) -> bool:
    """Check whether a value is an `onnx.ModelProto`."""
    return isinstance(value, ModelProto)


def parsed_model(data: bytes | bytearray, name: str) -> Any:
    """Return the `onnx.ModelProto` that bytes hold.

    Raises:
        SourceError: if they hold none.
    """
    try:
        return ModelProto.FromString(bytes(data))
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise SourceError(
            f"cannot read {name}: it is no ONNX file",
            expected="an onnx.ModelProto",
            got=str(error).split("\n", 1)[0][:200],
            hint="it was cut off, or is none that was written so: copy or export it again",
        ) from error


def attribute_kind(attribute: Any) -> str:
    """Return the name of an attribute's type, such as "INTS"; empty where it is of none that is known."""
    try:
        return str(AttributeProto.AttributeType.Name(attribute.type))
    except ValueError:
        return ""


def definition_of(
    node: bytes, op: str, domain: str, opset: int, types: Sequence[tuple[int, Sequence[Any]] | None]
) -> Any:
    """Return the `onnx.FunctionProto` by which the standard defines an operator.

    Args:
        node: the node, an `onnx.NodeProto` as bytes.
        op, domain, opset: its operator.
        types: number of the type and sizes of each input; None for one that is left out.

    Raises:
        LookupError: if the standard defines it otherwise.
    """
    schema: Any = defs.get_schema(op, opset, domain)
    if schema.has_function:
        return schema.function_body
    if not schema.has_context_dependent_function:
        raise LookupError(op)
    return FunctionProto.FromString(schema.get_context_dependent_function(node, [_type(one) for one in types]))


def _type(given: tuple[int, Sequence[Any]] | None) -> bytes:
    made = TypeProto()
    if given is not None:
        made.tensor_type.elem_type, sizes = given
        for size in sizes:
            place = made.tensor_type.shape.dim.add()
            if isinstance(size, int):
                place.dim_value = size
            else:
                place.dim_param = str(size)
    return bytes(made.SerializeToString())
