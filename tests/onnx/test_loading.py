"""What loading a model believes, and what it tells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, external_data_helper, helper, numpy_helper

import flowcompute as fc
from flowcompute.onnx.tensors.own_tensors import without_tensors
from tests.model_files.files import settle
from tests.onnx.models import model, node, port

W = np.arange(12, dtype="f4").reshape(3, 4)
X = np.ones((5, 3), "f4")


def product(**values: Any) -> onnx.ModelProto:
    return model([node("MatMul", "x w", "y")], [port("x", ("N", 3))], values={"w": W} | values)


def test_importing_the_package_does_not_import_onnx() -> None:
    code = "import sys, flowcompute; assert 'onnx' not in sys.modules; flowcompute.onnx; assert 'onnx' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_tells_what_it_is(tmp_path: Path) -> None:
    onnx.save(product(), tmp_path / "m.onnx")
    for given_as in (tmp_path / "m.onnx", (tmp_path / "m.onnx").read_bytes(), product()):
        loaded = fc.onnx.load(given_as)
        assert [(one.name, one.dtype, one.shape) for one in loaded.inputs] == [("x", np.float32, ("N", 3))]
        assert [one.name for one in loaded.outputs] == ["y"]
        assert (loaded.opset, loaded.operators, loaded.weights_bytes) == (18, {"MatMul": 1}, W.nbytes)
        np.testing.assert_array_equal(loaded(fc.source(X)).resolve(device="numpy"), X @ W)
        np.testing.assert_array_equal(loaded(x=X).resolve(device="numpy"), X @ W)


def test_a_node_has_its_name_in_plans_and_in_errors() -> None:
    y = fc.onnx.load(product())(fc.source(X))
    assert "matmul_y" in str(y)
    with pytest.raises(fc.onnx.UnsupportedError, match=r"matmul_y: MatMul \(opset 18\).*inner sizes differ"):
        fc.onnx.load(product(w=W.T.copy()))(X)


def test_all_that_is_missing_is_told_at_once() -> None:
    made = model(
        [node("NonZero", "x", "i"), node("Blur", "x", "b", domain="com.acme"), node("Relu", "b", "r"),
         node("Unique", "r", "y"), node("Relu", "x", "z", alpha=1.0), node("Nothing", "x", "n")],
        [port("x", ("N", 3))], ["y", "i"], 17, domains=[helper.make_opsetid("com.acme", 1)],
    )  # fmt: skip
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(made)
    problems = caught.value.problems
    assert [(one.op, one.reason) for one in problems] == [
        ("NonZero", "length"),
        ("com.acme.Blur", "domain"),
        ("Unique", "length"),
        ("Relu", "attribute"),
        ("Nothing", "operator"),
    ]
    assert {one.reason for one in problems} <= set(fc.onnx.REASONS)
    assert all(one.hint and one.op in str(caught.value) and one.node in str(caught.value) for one in problems)
    assert "relu_r" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(TensorProto.STRING, "string"), (TensorProto.FLOAT8E4M3FN, "dtype"), (TensorProto.INT4, "dtype")],
)
def test_dtypes_without_elements_are_refused_by_node(kind: int, reason: str) -> None:
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(model([node("Identity", "x", "y")], [port("x", (2,), kind)]))
    assert [(one.op, one.reason) for one in caught.value.problems] == [("Identity", reason)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), "a value for each of x"),
        ((X, X), "a value for each of x"),
        ((X.astype("f8"),), "float32"),
        ((np.ones((5, 4), "f4"),), r"\(N, 3\)"),
        ((object(),), "an element or an array"),
    ],
)
def test_other_inputs_are_refused(values: tuple[Any, ...], expected: str) -> None:
    with pytest.raises(fc.SpecError, match=expected):
        fc.onnx.load(product())(*values)


def test_shapes_may_be_given() -> None:
    made = model([node("Relu", "x", "y")], [port("x", ("N", "H"))])
    with pytest.raises(fc.SpecError, match=r"\(\?, 4\)"):
        fc.onnx.load(made, shapes={"x": (None, 4)})(X)
    with pytest.raises(fc.SpecError, match="names of inputs: x"):
        fc.onnx.load(made, shapes={"z": (1,)})
    with pytest.raises(fc.SpecError, match=r"names of inputs: x\n *got +1\n *do +batch_axis=\{\"x\": 1\}"):
        fc.onnx.load(made, batch_axis=1)  # type: ignore[arg-type]
    square = model([node("Add", "x z", "y")], [port("x", ("N", "M")), port("z", ("N", "M"))])
    with pytest.raises(fc.SpecError, match="two sizes for 'M'"):
        fc.onnx.load(square)(X, np.ones((5, 1), "f4"))


# -- other files --------------------------------------------------------------------------------------


def external(folder: Path, **changes: str) -> Path:
    made = product()
    tensor = made.graph.initializer[0]
    (folder / "w.bin").write_bytes(b"skip" + W.tobytes())
    external_data_helper.set_external_data(tensor, "w.bin", 4, W.nbytes)
    for entry in tensor.external_data:
        entry.value = changes.get(entry.key, entry.value)
    tensor.ClearField("raw_data")
    path = folder / "m.onnx"
    path.write_bytes(made.SerializeToString())
    settle(folder / "w.bin")
    return path


def test_external_data_stays_in_its_file(tmp_path: Path) -> None:
    loaded = fc.onnx.load(external(tmp_path))
    y = loaded(fc.source(X))
    np.testing.assert_array_equal(y.resolve(device="numpy"), X @ W)
    (weight,) = [one for one in y.inputs if isinstance(one, fc.Constant)]
    assert weight.memory_bytes == 0
    # A model without a path has no folder.
    with pytest.raises(fc.SourceError, match="another file"):
        fc.onnx.load((tmp_path / "m.onnx").read_bytes())


@pytest.mark.parametrize(
    "changes",
    [
        {"location": "../w.bin"},
        {"location": "/etc/hostname"},
        {"location": ""},
        {"location": "a\0b"},
        {"location": "link"},
        {"location": "."},
        {"location": "missing.bin"},
        {"offset": "8"},
        {"offset": "-4"},
        {"offset": "9" * 30},
        {"length": "47"},
    ],
    ids=str,
)
def test_external_data_elsewhere_is_refused(tmp_path: Path, changes: dict[str, str]) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "w.bin").write_bytes(b"skip" + W.tobytes())
    (inner / "link").symlink_to(tmp_path / "w.bin")
    with pytest.raises(fc.SourceError):
        fc.onnx.load(external(inner, **changes))


def test_a_checkpoint_keeps_the_place_and_no_bytes(tmp_path: Path) -> None:
    from flowcompute.checkpoint.job.rebuild import rebuild_job  # noqa: PLC0415 - of this test alone
    from tests.checkpoint.kept import Store, described  # noqa: PLC0415 - as above

    store, y = Store(), fc.onnx.load(external(tmp_path))(fc.source(X))
    data = described(y, store=store)
    (kept,) = [one for one in data["nodes"] if one["tag"] == "placed"]
    assert (kept["tensor"], kept["offset"], kept["file"]["path"]) == ("w", 4, os.path.realpath(tmp_path / "w.bin"))
    (again,) = rebuild_job(data, store.get)
    np.testing.assert_array_equal(again.resolve(device="numpy"), X @ W)


# -- files that lie -----------------------------------------------------------------------------------


def broken(change: Any) -> onnx.ModelProto:
    made = product()
    change(made.graph)
    return made


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.initializer[0].dims.append(1 << 50),
        lambda graph: graph.initializer[0].dims.__setitem__(0, -1),
        lambda graph: graph.initializer[0].ClearField("raw_data"),
        lambda graph: graph.initializer[0].dims.extend([1] * 40),
        lambda graph: graph.node[0].input.__setitem__(0, "nowhere"),
        lambda graph: graph.output[0].__setattr__("name", "nowhere"),
        lambda graph: graph.node.append(graph.node[0]),
        lambda graph: graph.node[0].output.__setitem__(0, "x"),
    ],
)
def test_models_that_are_not_sound(change: Any) -> None:
    with pytest.raises(fc.SourceError, match="cannot read the ONNX model"):
        fc.onnx.load(broken(change))


def test_graphs_within_graphs_end() -> None:
    leaf = inner = model([node("Identity", "c", "y")], []).graph
    for _ in range(20):
        inner = helper.make_graph([node("If", "c", "y", then_branch=inner, else_branch=leaf)], "g", [], leaf.output)
    made = model(list(inner.node), [port("c", (), TensorProto.BOOL)])
    with pytest.raises(fc.SourceError, match="graphs lie within graphs"):
        fc.onnx.load(made)


@given(st.binary(max_size=200))
@settings(max_examples=50)
def test_bytes_that_are_no_model(data: bytes) -> None:
    with pytest.raises(fc.FlowError):
        fc.onnx.load(data)


@given(st.integers(0, 10_000), st.integers(0, 7))
@settings(max_examples=100)
def test_a_flipped_bit_is_an_error_of_ours_or_another_model(place: int, bit: int) -> None:
    data = bytearray(model([node("Conv", "x w", "c"), node("Reshape", "c s", "y")], [port("x", (1, 2, 4, 4))],
                           values={"w": np.ones((1, 2, 2, 2), "f4"), "s": np.array([1, -1])})
                     .SerializeToString())  # fmt: skip
    data[place % len(data)] ^= 1 << bit
    try:
        loaded = fc.onnx.load(bytes(data))
        if len(loaded.inputs) == 1:
            loaded(np.ones((1, 2, 4, 4), "f4"))
    except fc.FlowError:
        pass


def test_a_file_cut_off_anywhere(tmp_path: Path) -> None:
    data = product().SerializeToString()
    for length in range(0, len(data) - 1, 7):
        (tmp_path / "m.onnx").write_bytes(data[:length])
        with pytest.raises(fc.FlowError):
            fc.onnx.load(tmp_path / "m.onnx")
    with pytest.raises(fc.SourceError):
        fc.onnx.load(tmp_path / "none.onnx")


def test_half_formats_in_the_field_of_integers() -> None:
    halves = np.array([1.5, -2.25], "f2")
    tensor = TensorProto(name="h", data_type=TensorProto.FLOAT16, dims=[2], int32_data=halves.view("u2").tolist())
    made = model([node("Identity", "h", "y")], [])
    made.graph.initializer.append(tensor)
    np.testing.assert_array_equal(fc.onnx.load(made)().resolve(device="numpy"), halves, strict=True)
    assert numpy_helper.to_array(tensor).tolist() == halves.tolist()


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Constant", "", {"value": 5}),
        ("ConstantOfShape", "s", {"value": 5}),
        ("If", "k", {"then_branch": 5, "else_branch": 4}),
        ("Loop", "s _ s", {"body": 5}),
        ("Scan", "s", {"body": 5, "num_scan_inputs": 1}),
        ("Einsum", "s", {"equation": 5}),
    ],
)
def test_attributes_of_another_type(op: str, inputs: str, attributes: dict[str, int]) -> None:
    made = model([node(op, inputs, "y", **attributes)], [], values={"s": np.array([2]), "k": np.array(True)})
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(made)()
    assert caught.value.reason == "invalid"


@pytest.mark.parametrize("name", [b"the-graph", b"the-node", b"the-value", b"Relu", b"the-weight"])
def test_names_that_are_no_text(name: bytes) -> None:
    one = onnx.helper.make_node("Relu", ["x"], ["the-value"], name="the-node")
    made = model(
        [one, node("Add", "the-value the-weight", "y")], [port("x", [2])], values={"the-weight": np.ones(2, "f4")}
    )
    made.graph.name = "the-graph"
    data = made.SerializeToString().replace(name, b"\xff" + name[1:])
    try:
        fc.onnx.load(data)(np.ones(2, "f4")).resolve(device="numpy")
    except fc.FlowError as error:
        assert str(error)


# -- tensors in the model's own file ------------------------------------------------------------------


def large(raw: bool, **options: Any) -> onnx.ModelProto:
    """A model with large tensors: of its graph, of a Constant, and in a branch."""
    w = np.random.default_rng(3).standard_normal((3, 4096)).astype("f4")
    made = [numpy_helper.from_array(w * factor, name) for factor, name in ((1, "w"), (2, "v"), (3, "u"))]
    if not raw:
        for one, factor in zip(made, (1, 2, 3), strict=True):
            one.ClearField("raw_data")
            one.float_data.extend((w * factor).reshape(-1).tolist())
    branch = [
        helper.make_graph([node("Constant", "", f"{name}_c", value=made[2]), node("Add", f"s {name}_c", f"{name}_y")],
                          name, [], [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)])
        for name in ("then", "else")
    ]  # fmt: skip
    nodes = [node("Constant", "", "c", value=made[1]), node("Add", "w c", "s"),
             node("If", "yes", "b", then_branch=branch[0], else_branch=branch[1]), node("MatMul", "x b", "y")]  # fmt: skip
    built = model(nodes, [port("x", ("N", 3))], values={"yes": np.array(True)}, **options)
    built.graph.initializer.append(made[0])
    return built


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("pad", range(5))
def test_tensors_stay_in_the_file(tmp_path: Path, raw: bool, pad: int) -> None:
    """Wherever they begin; a kernel reads aligned numbers, so others are copied."""
    made = large(raw, doc_string="x" * pad)
    path = tmp_path / "m.onnx"
    onnx.save(made, path)
    loaded = fc.onnx.load(path)
    assert loaded.weights_bytes == fc.onnx.load(made).weights_bytes
    got = loaded(X).resolve(device="numpy")
    np.testing.assert_array_equal(got, fc.onnx.load(made)(X).resolve(device="numpy"))


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(large(True), path)
    y = fc.onnx.load(path)(fc.source(X))
    settle(path)
    onnx.save(large(True, doc_string="other"), path)
    with pytest.raises(fc.SourceError, match="changed"):
        y.resolve(device="numpy")


@given(st.binary(max_size=200), st.integers(0, 60000), st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_damaged_files_are_as_they_were_parsed_whole(cut: bytes, place: int, byte: int) -> None:
    """Whatever is in a file, leaving tensors out changes neither what is read nor whether it is refused."""
    data = bytearray(large(True).SerializeToString())
    place %= len(data)
    data[place] = byte
    data[place : place + len(cut) // 2] = cut
    mark = "mark"
    slim = without_tensors(memoryview(bytes(data)), mark)
    try:
        wanted = onnx.ModelProto.FromString(bytes(data))
    except (DecodeError, ValueError) as error:
        with pytest.raises(type(error)):
            onnx.ModelProto.FromString(slim)
        return
    got = onnx.ModelProto.FromString(slim)
    for tensor, other in zip(got.graph.initializer, wanted.graph.initializer, strict=True):
        entries = [one for one in tensor.external_data if one.key == mark]
        if entries:
            offset, count = map(int, entries[-1].value.split())
            held = other.raw_data or np.array(other.float_data, "<f4").tobytes()
            assert bytes(data[offset : offset + count]) == held
        else:
            assert tensor == other


def test_a_file_cannot_pretend_to_hold_a_mark(tmp_path: Path) -> None:
    made = product()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "mark", f"0 {W.nbytes}"
    onnx.save(made, tmp_path / "m.onnx")
    with pytest.raises(fc.SourceError, match="not in the folder"):
        fc.onnx.load(tmp_path / "m.onnx")
