"""The record of how one class of elements is kept; `tags.py` is the table of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.checkpoint.job.fields import Fields, refuse
from flowcompute.elements import Element
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.model_files import NamedWeights
from flowcompute.spec import Spec

INLINE_BYTES = 1 << 14
"""Arrays up to this size lie in the description itself."""

BLOB_BYTES = 64 << 20
"""Arrays up to this size are kept beside it; larger ones are given again by name."""


def _no_graphs(_: object) -> Any:
    refuse("cannot keep a graph within a graph within a job")


@dataclass
class Describing:
    """A job being described.

    Attributes:
        put: keeps an array beside the description and gives what stands for it there.
        kernels: functions of `fc.kernel` found so far, by digest.
        contents: whether digests of the contents of files are taken, to be compared later.
        files: descriptions of files that several elements lie in, by path.
        graph: describes a graph that an element has of its own, as a job.
    """

    put: Callable[[np.ndarray], Any]
    kernels: dict[str, ir.TypedFunction] = field(default_factory=dict)
    contents: bool = False
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    graph: Callable[[Graph], dict[str, Any]] = _no_graphs

    def array(self, value: np.ndarray) -> dict[str, Any]:
        """Return an array of a dtype of ours, in the description or beside it."""
        array = np.ascontiguousarray(value)
        return {"bytes": array.tobytes()} if array.nbytes <= INLINE_BYTES else {"blob": self.put(array)}


@dataclass
class Rebuilding:
    """A job being made again.

    Attributes:
        get: gives an array for what `put` gave.
        bind: objects given by name.
        kernels: functions of `fc.kernel`, by digest.
        allow: folders whose files the job may replace.
        accept_touched: whether a file that was touched since is taken if its contents are the same.
        weights: files of weights that were opened already, by path.
        roots: makes the roots again of a graph that an element has of its own.
    """

    get: Callable[[Any], np.ndarray]
    bind: Mapping[str, object]
    kernels: Mapping[str, ir.TypedFunction]
    allow: tuple[str, ...] = ()
    accept_touched: bool = False
    weights: dict[str, NamedWeights] = field(default_factory=dict)
    roots: Callable[[object], list[Element]] = _no_graphs

    def array(self, fields: Fields, spec: Spec) -> np.ndarray:
        """Return the array of that dtype and shape.

        Raises:
            CheckpointError: if it is another one.
        """
        shape = tuple(size or 0 for size in spec.full_shape)
        if "bytes" in fields:
            data = fields.take("bytes")
            if not isinstance(data, bytes) or len(data) != spec.item_bytes * (1 if spec.stream is None else shape[0]):
                fields.wrong("bytes", f"the bytes of {spec}")
            try:
                return np.frombuffer(data, spec.dtype).reshape(shape)
            except ValueError:
                fields.wrong("bytes", "a shape that an array can have")
        try:
            array: Any = self.get(fields.take("blob"))
        except (AttributeError, KeyError, TypeError, ValueError):
            fields.wrong("blob", "what stands for an array")
        if not isinstance(array, np.ndarray) or (array.dtype, array.shape) != (spec.dtype, shape):
            refuse("cannot use another array beside the description", expected=str(spec), got=_told(array))
        return array


def _told(array: object) -> str:
    return f"{array.dtype.name}{array.shape}" if isinstance(array, np.ndarray) else type(array).__name__


@dataclass(frozen=True)
class KeptNode:
    """An element's name, spec and operands, known before it is made again.

    Attributes:
        name: its name in the graph.
        given: that name where the user gave it.
        spec: what it is said to have.
        inputs: its operands.
        bound: what was given for it by name, where it needs that.
    """

    name: str
    given: str | None
    spec: Spec
    inputs: tuple[Element, ...]
    bound: Any


@dataclass(frozen=True)
class Part:
    """A class of elements as data: its tag, and the functions that describe and rebuild it.

    Attributes:
        tag: what stands for it in job data; never changed, never used again for anything else.
        describe: the fields of an element beyond name, site, operands and spec, as plain data.
        rebuild: the element that fields describe.
        bind: what has to be given again by name, in a word; "" for nothing. An element that needs it says so in
            its field "bind".
    """

    tag: str
    describe: Callable[[Any, Describing], dict[str, Any]]
    rebuild: Callable[[Fields, KeptNode, Rebuilding], Element]
    bind: str = ""
