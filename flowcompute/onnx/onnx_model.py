"""`fc.onnx.load`: a model as a function of elements."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.elements import Constant, Element, user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.onnx.graph_builder import GraphBuilder, found_problems, problem_of
from flowcompute.onnx.graphs import OnnxGraph, Port
from flowcompute.onnx.logical_value import Value
from flowcompute.onnx.model_reader import OnnxFile, read_model
from flowcompute.onnx.problems import Refusal, UnsupportedError, UnsupportedNode
from flowcompute.onnx.sessions import Session, state_ports
from flowcompute.onnx.sizes import Records, Size

Shapes = Mapping[str, Sequence[int | str | None]]


class OnnxOutputs(tuple[Element, ...]):
    """The elements that a model with several outputs gives: a tuple, whose entries also have names."""

    _names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], elements: Sequence[Element]) -> OnnxOutputs:
        """Return elements under their names."""
        made = super().__new__(cls, elements)
        made._names = tuple(names)
        return made

    def __getitem__(self, key: Any) -> Any:
        """Return an output by its name or place."""
        return super().__getitem__(self._names.index(key) if isinstance(key, str) and key in self._names else key)

    def __getattr__(self, name: str) -> Element:
        if name in self._names:
            made: Element = self[name]
            return made
        raise AttributeError(f"no output {name!r}; there are {', '.join(self._names)}")

    def keys(self) -> tuple[str, ...]:
        """Return the names of the outputs."""
        return self._names

    def items(self) -> Iterator[tuple[str, Element]]:
        """Yield each output with its name."""
        return zip(self._names, self, strict=True)


class OnnxModel:
    """A model out of an ONNX file. Called with elements or arrays, it gives the elements of its outputs.

    Attributes:
        path: of its file; empty where it was given as bytes.
        inputs, outputs: its ports, with `name`, `dtype` and `shape`.
        opset: version of ONNX's own operators.
        opsets: version of each domain.
        operators: how often each operator is in its graph.
        weights_bytes: bytes of its initial values.
    """

    def __init__(self, file: OnnxFile, graph: OnnxGraph, batch_axis: Mapping[str, int] | None) -> None:
        self.path, self.inputs, self.outputs = file.path, graph.inputs, graph.outputs
        self.opset = file.opsets.get("", 0)
        self.opsets: Mapping[str, int] = dict(file.opsets)
        self.operators: Mapping[str, int] = dict(Counter(node.full_op for node in graph.nodes).most_common())
        self.weights_bytes = file.weights_bytes
        self._name = file.name
        self._graph, self._functions, self._batch_axis = graph, file.functions, batch_axis

    def __repr__(self) -> str:
        nodes = sum(self.operators.values())
        return f"<OnnxModel {self._name}: {nodes} nodes, opset {self.opset}>"

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Compose the model with values of its inputs.

        A stream stands for the axis that `batch_axis` of `load` names, by default axis 0; the model is then computed
        record by record. Arrays are resident. Nothing is computed yet.

        Args:
            values: elements or arrays, in the order of `inputs`.
            named: the same by name.

        Returns:
            The element of the output; of several, a tuple whose entries have names: `model(x).y`, `model(x)["y"]`.

        Raises:
            SpecError: if the values are not those of the inputs.
            UnsupportedError: if nodes cannot be computed for these values, all of them at once.
        """
        given = self._bound(values, named)
        self._refuse_others(given)
        inputs = [self._value(port, given[port.name]) for port in self.inputs]
        self._check_sizes(inputs)
        streams = [value for value in inputs if value.axis is not None]
        builder = GraphBuilder(self._functions, streams[0].element if streams else None)
        scope = builder.build(self._graph, inputs, {})
        made = [] if builder.problems else [self._output(port, scope[port.name], builder) for port in self.outputs]
        if builder.problems:
            raise UnsupportedError(builder.problems, self._name)
        return made[0] if len(made) == 1 else OnnxOutputs([port.name for port in self.outputs], made)

    def session(
        self,
        *,
        state: Mapping[str, str],
        batch: int,
        capacity: int,
        checkpoint: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Session:
        """Return steps of a model with past keys and values: `with model.session(...) as steps: steps.step(...)`.

        Args:
            state: by the name of an input that of the output which is the input of the next step, such as
                `{"past_key_values.0.key": "present.0.key"}`.
            batch: sequences that are computed together.
            capacity: most rows, of prompt and answer together, that the states have room for.
            checkpoint: where `freeze` keeps the states; a session that is opened where there is one goes on from it.
            options: as for `fc.open_flow`: `memory`, `device`, `device_memory`, `precision`.

        Raises:
            SpecError: if these are no states of the model.
        """
        states = state_ports(self._graph, state, batch, capacity, self._name)
        return Session(self._graph, self._functions, states, self._name, options, checkpoint)

    def _bound(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        names = [port.name for port in self.inputs]
        given = dict(zip(names, values, strict=False))
        twice = sorted(given.keys() & named.keys())
        unknown = sorted(named.keys() - set(names))
        given |= named
        missing = [name for name in names if name not in given]
        if len(values) > len(names) or twice or unknown or missing:
            got = f"{len(values)} values" + (f" and {', '.join(sorted(named))}" if named else "")
            raise SpecError(
                "cannot call the model with these inputs",
                element=self._name,
                site=user_site(),
                expected=f"a value for each of {', '.join(names) or 'no inputs'}",
                got=got,
            )
        return given

    def _refuse_others(self, given: Mapping[str, Any]) -> None:
        """Refuse what is no array, naming the nodes that read it: its dtype need not be one of NumPy's."""
        kinds = {
            "TensorProto": Refusal(
                "dtype", "an onnx.TensorProto is no array", "give onnx.numpy_helper.to_array(tensor)"
            ),
            "NoneType": Refusal("sequence", "an optional value that is empty", "give an array"),
        }
        problems = []
        for name, value in given.items():
            refusal = kinds.get(type(value).__name__)
            if refusal is not None:
                problems += [problem_of(node, refusal) for node in self._graph.nodes if name in node.inputs]
        if problems:
            raise UnsupportedError(problems, self._name)

    def _value(self, port: Port, given: Any) -> Value:
        element = self._element(port, given)
        if not element.spec.is_stream:
            self._check_shape(port, element.spec.shape, None)
            return Value.of_argument(element)
        at = None if self._batch_axis is None else self._batch_axis.get(port.name, 0)
        if at is None or not 0 <= at < element.ndim:
            raise SpecError(
                f"cannot take a stream for input {port.name!r}",
                element=self._name,
                site=user_site(),
                expected="a resident value" if at is None else f"batch_axis below {element.ndim}",
                got=str(element.spec),
                hint="batch_axis= of fc.onnx.load says which axis a stream stands for",
            )
        items = element.spec.shape
        self._check_shape(port, (*items[:at], element.spec.length, *items[at:]), at)
        declared = None if port.shape is None else port.shape[at]
        records: Size = declared if isinstance(declared, int) else Records()
        return Value.of(element, at, records)

    def _element(self, port: Port, given: Any) -> Any:
        """Return what is given as an element of the port's dtype."""
        try:
            if isinstance(given, Element):
                element: Any = given
            elif isinstance(given, np.ndarray | np.generic):
                element = Constant(given)
            else:
                element = Constant(np.asarray(given, port.dtype))
        except (TypeError, ValueError) as error:
            raise SpecTypeError(
                f"cannot take this for input {port.name!r}",
                element=self._name,
                site=user_site(),
                expected="an element or an array",
                got=short_repr(given),
                hint="model(**values) gives inputs by name" if isinstance(given, dict) else None,
            ) from error
        if not hasattr(element, "spec") or (port.dtype is not None and element.dtype != port.dtype):
            name = "an array" if port.dtype is None else port.dtype.name
            raise SpecError(
                f"cannot take this for input {port.name!r}",
                element=self._name,
                site=user_site(),
                expected=name,
                got=str(getattr(element, "spec", type(element).__name__)),
                hint=f"cast it: .astype({name!r})",
            )
        return element

    def _check_shape(self, port: Port, shape: tuple[int | None, ...], at: int | None) -> None:
        """Refuse a value of another shape than the model declares."""
        declared = port.shape
        if declared is None:
            return
        fits = len(shape) == len(declared)
        for place, (own, wanted) in enumerate(zip(shape, declared, strict=False)):
            # A model for one record is computed record by record.
            if not isinstance(wanted, int) or own == wanted or (place == at and wanted == 1):
                continue
            fits = False
        if not fits:
            raise SpecError(
                f"cannot take this shape for input {port.name!r}",
                element=self._name,
                site=user_site(),
                expected=f"({', '.join('?' if one is None else str(one) for one in declared)})",
                got=f"({', '.join('?' if one is None else str(one) for one in shape)})",
                hint="shapes= of fc.onnx.load says of which shapes the inputs are",
            )

    def _check_sizes(self, inputs: Sequence[Value]) -> None:
        """Refuse sizes that differ where the model names them alike."""
        sizes: dict[str, Any] = {}
        for port, value in zip(self.inputs, inputs, strict=True):
            for name, size in zip(port.shape or (), value.shape, strict=False):
                if isinstance(name, str) and not isinstance(size, Records) and sizes.setdefault(name, size) != size:
                    raise SpecError(
                        f"cannot take two sizes for {name!r}",
                        element=self._name,
                        site=user_site(),
                        expected=f"{name} = {sizes[name]}",
                        got=f"{size} of input {port.name!r}",
                    )

    def _output(self, port: Port, value: Value | None, builder: GraphBuilder) -> Any:
        """Return the element of an output; what cannot be one is a problem of the node that makes it."""
        assert value is not None
        try:
            return value.batch_first("give")
        except Refusal as refusal:
            node = next((one for one in self._graph.nodes if port.name in one.outputs), None)
            builder.problems.append(
                UnsupportedNode(port.name, "output", "", self.opset, refusal.reason, refusal.hint, refusal.text)
                if node is None
                else problem_of(node, refusal)
            )
        return None


def load(
    path: str | os.PathLike[str] | bytes | Any,
    *,
    shapes: Shapes | None = None,
    batch_axis: Mapping[str, int] | None = {},
) -> OnnxModel:
    """Open an ONNX model: opsets 1 to 28. Its graph is read and checked; its weights stay in the file where they can.

    Args:
        path: of the file, or its bytes, or an `onnx.ModelProto`.
        shapes: sizes of inputs by name, in place of those that the model declares; None for one that is not fixed.
        batch_axis: by name of an input the axis that a stream stands for; 0 for those that are not named. None takes
            resident values only.

    Returns:
        The model, which is called with elements.

    Raises:
        SourceError: if the file cannot be read, is not sound, or names files outside of its folder.
        UnsupportedError: naming all nodes whose operators cannot be computed.
        SpecError: if `shapes` or `batch_axis` name no input.
    """
    file = read_model(path)
    graph = file.graph
    for name, given in (("shapes", shapes), ("batch_axis", batch_axis)):
        is_map = given is None or isinstance(given, Mapping)
        unknown = sorted(set(given or ()) - {port.name for port in graph.inputs}) if is_map else [repr(given)]
        if unknown:
            raise SpecError(
                f"cannot take {name}=",
                element="onnx",
                site=user_site(),
                expected=f"names of inputs: {', '.join(port.name for port in graph.inputs)}",
                got=", ".join(map(str, unknown)),
                hint=None if is_map else f'{name}={{"{graph.inputs[0].name}": {given!r}}}' if graph.inputs else None,
            )
    if shapes:
        ports = (
            Port(p.name, p.dtype, tuple(shapes.get(p.name, p.shape or ())) or p.shape, p.refusal) for p in graph.inputs
        )
        graph = OnnxGraph(tuple(ports), graph.outputs, graph.values, graph.nodes)
    problems = list(found_problems(graph, file.functions))
    if problems:
        raise UnsupportedError(problems, file.name)
    return OnnxModel(file, graph, batch_axis)
