"""Models with past keys, step by step: each step gives what the whole model gives of all rows so far."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import flowcompute as fc
from tests.onnx.models import INT64, model, node, port

rng = np.random.default_rng(19)
D, HEADS, SIZE, BATCH = 8, 2, 4, 2
STATE = {"past_k": "present_k", "past_v": "present_v"}
WEIGHTS = {f"w{one}": rng.standard_normal((D, D)).astype("f4") / 3 for one in "qkvo"}
WEIGHTS |= {"embed": rng.standard_normal((11, D)).astype("f4")}


def typed(made: Any, **shapes: Any) -> Any:
    """A model whose outputs say their shapes."""
    for one in made.graph.output:
        if one.name in shapes:
            one.CopyFrom(helper.make_tensor_value_info(one.name, TensorProto.FLOAT, shapes[one.name]))
    return made


def decoder(mask: bool = False) -> Any:
    """One layer of causal attention; its mask follows from shapes, or is given."""
    values: dict[str, Any] = {
        **WEIGHTS, "heads": np.array([0, 0, HEADS, SIZE]), "flat": np.array([0, 0, D]), "low": np.float32(-1e9),
        "scale": np.float32(SIZE**-0.5), "none": np.int64(0), "one": np.int64(1), "two": np.int64(2),
        "first": np.array([0]), "last": np.array([1]), "inner": np.array([1, 2]),
    }  # fmt: skip
    nodes = [
        node("Gather", "embed ids", "x", axis=0),
        *(node("MatMul", f"x w{one}", f"m{one}") for one in "qkv"),
        *(node("Reshape", f"m{one} heads", f"r{one}") for one in "qkv"),
        *(node("Transpose", f"r{one}", f"t{one}", perm=[0, 2, 1, 3]) for one in "qkv"),
        node("Concat", "past_k tk", "present_k", axis=2),
        node("Concat", "past_v tv", "present_v", axis=2),
        node("Transpose", "present_k", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "tq kt", "raw"), node("Mul", "raw scale", "scores"),
        node("Shape", "past_k", "ps"), node("Gather", "ps two", "past", axis=0),
        node("Shape", "ids", "is"), node("Gather", "is one", "count", axis=0), node("Add", "past count", "total"),
        node("Range", "past total one", "qpos"), node("Range", "none total one", "kpos"),
        node("Unsqueeze", "qpos last", "qcol"), node("Unsqueeze", "kpos first", "krow"),
        node("LessOrEqual", "krow qcol", "seen"),
    ]  # fmt: skip
    inputs = [port("ids", ("batch", "new"), INT64)]
    if mask:
        inputs.append(port("mask", ("batch", "all"), INT64))
        nodes += [node("Cast", "mask", "asked", to=TensorProto.BOOL), node("Unsqueeze", "asked inner", "wide"),
                  node("And", "seen wide", "both")]  # fmt: skip
    nodes += [
        node("Where", f"{'both' if mask else 'seen'} scores low", "masked"), node("Softmax", "masked", "p", axis=-1),
        node("MatMul", "p present_v", "o"), node("Transpose", "o", "ot", perm=[0, 2, 1, 3]),
        node("Reshape", "ot flat", "of"), node("MatMul", "of wo", "y"),
    ]  # fmt: skip
    inputs += [port(one, ("batch", HEADS, "past", SIZE)) for one in STATE]
    made = model(nodes, inputs, ("y", *STATE.values()), values=values)
    return typed(made, **dict.fromkeys(STATE.values(), ("batch", HEADS, "all", SIZE)))


def whole(made: Any, **inputs: Any) -> Any:
    """What the model makes of all rows at once, without a session."""
    nothing = np.zeros((BATCH, HEADS, 0, SIZE), "f4")
    return fc.onnx.load(made)(**inputs, past_k=nothing, past_v=nothing).y.resolve(device="numpy")


def session(made: Any, capacity: int = 9, **options: Any) -> Any:
    return fc.onnx.load(made).session(state=STATE, batch=BATCH, capacity=capacity, **{"device": "numpy"} | options)


IDS = rng.integers(0, 11, (BATCH, 9))


@pytest.mark.parametrize("parts", [(9,), (4, 1, 1, 3), (1, 1, 1, 1, 1), (2, 2, 2, 2)])
def test_steps_give_what_the_whole_gives(parts: tuple[int, ...]) -> None:
    """Also in a buffer that is filled to its last row."""
    begin, rows = 0, []
    with session(decoder()) as steps:
        for count in parts:
            rows.append(steps.step(ids=IDS[:, begin : begin + count])["y"])
            begin += count
            assert steps.length == begin
    np.testing.assert_allclose(np.concatenate(rows, axis=1), whole(decoder(), ids=IDS[:, :begin]), rtol=1e-5, atol=1e-6)


@pytest.mark.compiles
def test_kernels_are_made_once_for_each_shape() -> None:
    programs = []
    with session(decoder(), device="cpu") as steps:
        for begin, count in ((0, 3), (3, 1), (4, 1), (5, 1), (6, 3)):
            made = steps.step(ids=IDS[:, begin : begin + count])["y"]
            programs.append(steps.programs)
    assert programs[0] < programs[1] == programs[2] == programs[3] == programs[4]
    np.testing.assert_allclose(made, whole(decoder(), ids=IDS)[:, 6:], rtol=1e-5, atol=1e-6)


def test_a_mask_has_an_entry_for_each_row() -> None:
    mask = np.ones((BATCH, 8), np.int64)
    mask[1, 1:3] = 0
    with session(decoder(mask=True)) as steps:
        first = steps.step(ids=IDS[:, :5], mask=mask[:, :5])["y"]
        second = steps.step(ids=IDS[:, 5:8], mask=mask)["y"]
    wanted = whole(decoder(mask=True), ids=IDS[:, :8], mask=mask)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), wanted, rtol=1e-5, atol=1e-6)


def test_a_mask_of_another_length_is_refused() -> None:
    with session(decoder(mask=True)) as steps:
        steps.step(ids=IDS[:, :5], mask=np.ones((BATCH, 5), np.int64))
        with pytest.raises(fc.RunError, match="how many rows"):
            steps.step(ids=IDS[:, :1], mask=np.ones((BATCH, 5), np.int64))


def test_what_stands_behind_the_rows_is_never_read() -> None:
    """After a reset the buffers hold rows of before, here such as would spoil every sum."""
    ids = np.zeros((BATCH, 6), np.int64)
    made = decoder()
    next(one for one in made.graph.initializer if one.name == "embed").CopyFrom(
        helper.make_tensor("embed", TensorProto.FLOAT, (11, D), [np.nan] * D + [0.5] * (10 * D))
    )
    with session(made) as steps:
        assert np.isnan(steps.step(ids=ids)["y"]).all()
        steps.reset()
        got = steps.step(ids=ids[:, :2] + 1)["y"]
    np.testing.assert_allclose(got, whole(made, ids=ids[:, :2] + 1), rtol=1e-5, atol=1e-6)


def test_a_session_is_frozen_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    with session(decoder()) as steps:
        steps.step(ids=IDS[:, :4])
        steps.freeze(path)
        wanted = [steps.step(ids=IDS[:, 4:5])["y"], steps.step(ids=IDS[:, 5:8])["y"]]
    with session(decoder(), checkpoint=path) as steps:
        assert steps.length == 4
        got = [steps.step(ids=IDS[:, 4:5])["y"], steps.step(ids=IDS[:, 5:8])["y"]]
        steps.freeze()
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_array_equal(got[1], wanted[1])
    with session(decoder(), checkpoint=path) as steps:
        assert steps.length == 8


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    with session(decoder()) as steps:
        steps.step(ids=IDS[:, :4])
        steps.freeze(path)
    made = decoder()
    changed = next(one for one in made.graph.initializer if one.name == "wo")
    changed.raw_data = changed.raw_data[4:] + changed.raw_data[:4]
    with pytest.raises(fc.CheckpointError, match="another model"), session(made, checkpoint=path):
        pass


@pytest.mark.parametrize(
    "said",
    [None, [], {"length": -1}, {"length": 0, "added": None, "graph": "", "step": []},
     {"length": 0, "added": None, "graph": "", "step": [["ids", [2, -1], None, None]]},
     {"length": 0, "added": None, "graph": "", "step": [["ids", [3, 1], None, [True]]]},
     {"length": 0, "added": None, "graph": "", "step": [["ids", [1 << 40, 1], None, None]]}],
)  # fmt: skip
def test_a_checkpoint_of_anything_else_is_refused(tmp_path: Path, said: Any) -> None:
    feed = fc.feed(shape=(), dtype="float32")
    with (feed + 1).flow(device="numpy") as flow:
        flow.send(np.ones(1, "f4"))
        flow.freeze(tmp_path / "other", extra=said)
    with pytest.raises(fc.CheckpointError, match="session"), session(decoder(), checkpoint=tmp_path / "other"):
        pass


def test_nothing_to_freeze(tmp_path: Path) -> None:
    with session(decoder()) as steps, pytest.raises(fc.CheckpointError, match="no step"):
        steps.freeze(tmp_path / "kept")


def test_there_is_room_for_so_many_rows() -> None:
    with session(decoder(), capacity=4) as steps:
        steps.step(ids=IDS[:, :3])
        with pytest.raises(fc.RunError, match="capacity"):
            steps.step(ids=IDS[:, :2])
        # What was refused has changed nothing.
        assert steps.length == 3
        last = steps.step(ids=IDS[:, 3:4])["y"]
    np.testing.assert_allclose(last, whole(decoder(), ids=IDS[:, :4])[:, 3:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [({}, "got       none"), ({"ids": IDS, "more": 1}, "more"), ({"ids": IDS.astype("f4")}, "int64"),
     ({"ids": IDS[0]}, "int64"), ({"ids": [["a"]]}, "ids")],
)  # fmt: skip
def test_steps_with_other_inputs(inputs: Mapping[str, Any], text: str) -> None:
    with session(decoder()) as steps, pytest.raises(fc.RunError, match=text):
        steps.step(**inputs)


def test_a_session_is_opened_first() -> None:
    with pytest.raises(fc.RunError, match="not open"):
        session(decoder()).step(ids=IDS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({"state": {}}, "keep this state"), ({"state": {"past_k": "y2"}}, "'y2'"), ({"state": {"past_k": "present_k", "past_v": "present_k"}}, "output of its own"),
     ({"batch": 0}, "batch="), ({"capacity": 2.5}, "capacity="), ({"capacity": 1 << 40}, "capacity=")],
)  # fmt: skip
def test_states_that_are_none(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(fc.SpecError, match=text):
        fc.onnx.load(decoder()).session(**{"state": STATE, "batch": BATCH, "capacity": 9} | arguments)


# -- how a growing axis passes through nodes ----------------------------------------------------------

ROWS = {
    "softmax over the rows": ([node("Softmax", "all", "y", axis=1)], True),
    "softmax over the others": ([node("Softmax", "all", "y", axis=2)], True),
    "a sum over the rows": ([node("ReduceSum", "all axis", "y", keepdims=0)], False),
    "the largest of the rows": ([node("ReduceMax", "all axis", "y", keepdims=1)], False),
    "a mean of the others": ([node("ReduceMean", "all other", "y", keepdims=0)], True),
    "a running sum": ([node("CumSum", "all place", "y")], True),
    "rows turned": ([node("Transpose", "all", "y", perm=[0, 2, 1])], True),
    "a new axis": ([node("Unsqueeze", "all zero", "u"), node("Squeeze", "u zero", "y")], True),
    "others merged": ([node("Reshape", "all merged", "y")], True),
    "the rows merged": ([node("Unsqueeze", "all axis", "u"), node("Reshape", "u back", "y")], True),
    "half of the others": ([node("Slice", "all zero one other", "y")], True),
    "rows of a table": ([node("Shape", "all", "s"), node("Slice", "s one two", "n"),
                         node("Slice", "table zero n", "part"), node("Unsqueeze", "part other", "col"),
                         node("Mul", "all col", "y")], True),
    "the table's rows of the step": ([node("Shape", "past", "s"), node("Slice", "s one two", "from"),
                                      node("Shape", "all", "t"), node("Slice", "t one two", "to"),
                                      node("Slice", "table from to", "part"), node("Unsqueeze", "part other", "col"),
                                      node("Mul", "new col", "y")], False),
    "an expanded value": ([node("Shape", "all", "s"), node("Expand", "number s", "e"), node("Add", "e all", "y")],
                          True),
    "a filled value": ([node("Shape", "all", "s"), node("ConstantOfShape", "s", "f"), node("Sub", "f all", "y")], True),
    "a product over the rows": ([node("Transpose", "all", "t", perm=[0, 2, 1]), node("MatMul", "t all", "y")], False),
    "places beside the rows": ([node("Shape", "all", "s"), node("Gather", "s place", "n", axis=0),
                                node("Range", "none n step", "r"), node("Cast", "r", "f", to=1),
                                node("Unsqueeze", "f other", "col"), node("Mul", "all col", "y")], True),
}  # fmt: skip

NUMBERS = {
    "axis": np.array([1]), "other": np.array([-1]), "place": np.int64(1), "zero": np.array([0]), "one": np.array([1]),
    "two": np.array([2]), "merged": np.array([2, -1, 3, 1]), "back": np.array([0, -1, 3]), "none": np.int64(0),
    "step": np.int64(1), "table": np.arange(1, 13, dtype="f4"), "number": np.float32([[[2]]]),
}  # fmt: skip


def grown(name: str) -> Any:
    nodes = [node("Concat", "past new", "all", axis=1), *ROWS[name][0]]
    used = {one for each in nodes for one in each.input}
    values = {key: value for key, value in NUMBERS.items() if key in used}
    ports = [port("new", (2, "n", 3)), port("past", (2, "p", 3))]
    return typed(model(nodes, ports, ("y", "all"), values=values), all=(2, "total", 3))


@pytest.mark.parametrize("name", ROWS)
def test_nodes_over_rows(name: str) -> None:
    """Each step gives what the model gives of arrays that hold the rows themselves."""
    loaded = fc.onnx.load(grown(name))
    past = np.zeros((2, 0, 3), "f4")
    with loaded.session(state={"past": "all"}, batch=2, capacity=7, device="numpy") as steps:
        for count in (3, 1, 2):
            new = rng.standard_normal((2, count, 3)).astype("f4")
            got = steps.step(new=new)["y"]
            wanted = loaded(new=new, past=past)
            np.testing.assert_allclose(got, wanted.y.resolve(device="numpy"), rtol=1e-5, atol=1e-6)
            past = wanted["all"].resolve(device="numpy")


REFUSED = {
    "the mean of the rows": [node("ReduceMean", "all axis", "y")],
    "rows turned around": [node("Slice", "all last far axis back_step", "y")],
    "rows by their places": [node("Gather", "all place", "y", axis=1)],
    "unequal lengths": [node("Add", "all past", "y")],
    "rows merged with others": [node("Reshape", "all flat", "y")],
    "another operator": [node("LpNormalization", "all", "y", axis=1)],
    "the state without the new rows": [node("ReduceSum", "past axis", "y")],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_over_rows(name: str) -> None:
    """Nothing that would read behind the rows is computed."""
    nodes = [node("Concat", "past new", "all", axis=1), *REFUSED[name]]
    used = {one for each in nodes for one in each.input}
    numbers = {"last": np.array([-1]), "far": np.array([-(2**62)]), "back_step": np.array([-1])}
    numbers |= {**NUMBERS, "flat": np.array([2, -1])}
    values = {key: value for key, value in numbers.items() if key in used}
    made = model(nodes, [port("new", (2, "n", 3)), port("past", (2, "p", 3))], ("y", "all"), values=values)
    steps = fc.onnx.load(made).session(state={"past": "all"}, batch=2, capacity=7, device="numpy")
    with steps, pytest.raises(fc.onnx.UnsupportedError) as caught:
        steps.step(new=np.ones((2, 1, 3), "f4"))
    assert all(one.hint for one in caught.value.problems)


def test_a_state_that_does_not_grow() -> None:
    made = model([node("Mul", "past new", "all"), node("Identity", "new", "y")],
                 [port("new", (2, "n", 3)), port("past", (2, "p", 3))], ("y", "all"))  # fmt: skip
    steps = fc.onnx.load(made).session(state={"past": "all"}, batch=2, capacity=7, device="numpy")
    with steps, pytest.raises(fc.onnx.UnsupportedError):
        steps.step(new=np.ones((2, 1, 3), "f4"))


# -- attention that onnxruntime fuses, and decoders in parts ------------------------------------------


def fused(op: str) -> Any:
    """A decoder whose attention is one node, with a mask of all rows."""
    width = HEADS * SIZE * 4
    values: dict[str, Any] = {name: rng.standard_normal((8, width)).astype("f4") / 3 for name in ("wq", "wk", "wv")}
    values |= {"one": np.array([1]), "minus": np.int64(1), "place": np.int64(1)}
    nodes = [node("MatMul", f"x w{one}", one) for one in "qkv"]
    if op == "GroupQueryAttention":
        angles = np.outer(np.arange(9), 10.0 ** -np.arange(8)).astype("f4")
        values |= {"cos": np.cos(angles), "sin": np.sin(angles)}
        nodes += [node("ReduceSum", "mask one", "sum", keepdims=0), node("Sub", "sum minus", "less"),
                  node("Cast", "less", "counted", to=TensorProto.INT32), node("Shape", "mask", "shape"),
                  node("Gather", "shape place", "all", axis=0), node("Cast", "all", "total", to=TensorProto.INT32)]  # fmt: skip
        inputs = "q k v past_k past_v counted total cos sin"
        options = {"num_heads": HEADS, "kv_num_heads": HEADS, "do_rotary": 1}
    else:
        nodes.append(node("Cast", "mask", "seen", to=TensorProto.INT32))
        inputs, options = "q k v _ seen _ past_k past_v", {"num_heads": HEADS, "unidirectional": 1}
    nodes.append(node(op, inputs, "y present_k present_v", domain="com.microsoft", **options))
    ports = [port("x", ("batch", "new", 8)), port("mask", ("batch", "all"), INT64)]
    ports += [port(one, ("batch", HEADS, "past", SIZE * 4)) for one in STATE]
    domains = [helper.make_opsetid("com.microsoft", 1)]
    made = model(nodes, ports, ("y", *STATE.values()), values=values, domains=domains)
    return typed(made, **dict.fromkeys(STATE.values(), ("batch", HEADS, "all", SIZE * 4)))


@pytest.mark.parametrize("op", ["GroupQueryAttention", "MultiHeadAttention"])
def test_fused_attention_step_by_step(op: str) -> None:
    made = fused(op)
    x, mask = rng.standard_normal((BATCH, 7, 8)).astype("f4"), np.ones((BATCH, 7), np.int64)
    nothing = np.zeros((BATCH, HEADS, 0, SIZE * 4), "f4")
    wanted = fc.onnx.load(made)(x=x, mask=mask, past_k=nothing, past_v=nothing).y.resolve(device="numpy")
    rows = []
    with session(made) as steps:
        for begin, end in ((0, 4), (4, 5), (5, 7)):
            rows.append(steps.step(x=x[:, begin:end], mask=mask[:, :end])["y"])
        assert steps.length == 7
    np.testing.assert_allclose(np.concatenate(rows, axis=1), wanted, rtol=1e-5, atol=1e-6)


def merged() -> Any:
    """A decoder in one file: without past keys in one branch of an `If`, with them in the other."""
    half = np.float32(SIZE**-0.5)
    values = {**WEIGHTS, "heads": np.array([0, 0, HEADS, SIZE]), "flat": np.array([0, 0, D]), "scale": half}
    nodes = [
        *(node("MatMul", f"x w{one}", f"m{one}") for one in "qkv"),
        *(node("Reshape", f"m{one} heads", f"r{one}") for one in "qkv"),
        *(node("Transpose", f"r{one}", f"t{one}", perm=[0, 2, 1, 3]) for one in "qkv"),
    ]

    def branch(name: str, joined: bool) -> Any:
        first = [
            node("Concat", f"past_{one} t{one}", f"{name}_{one}", axis=2) if joined
            else node("Identity", f"t{one}", f"{name}_{one}") for one in "kv"
        ]  # fmt: skip
        made = [*first, node("Transpose", f"{name}_k", f"{name}_t", perm=[0, 1, 3, 2]),
                node("MatMul", f"tq {name}_t", f"{name}_r"), node("Mul", f"{name}_r scale", f"{name}_s"),
                node("Softmax", f"{name}_s", f"{name}_p", axis=-1), node("MatMul", f"{name}_p {name}_v", f"{name}_o"),
                node("Transpose", f"{name}_o", f"{name}_u", perm=[0, 2, 1, 3]),
                node("Reshape", f"{name}_u flat", f"{name}_f"), node("MatMul", f"{name}_f wo", f"{name}_y")]  # fmt: skip
        outputs = [helper.make_tensor_value_info(f"{name}_{one}", TensorProto.FLOAT, None) for one in "ykv"]
        return helper.make_graph(made, name, [], outputs)

    nodes.append(
        node("If", "use_cache_branch", "y present_k present_v", then_branch=branch("with", True),
             else_branch=branch("without", False))
    )  # fmt: skip
    ports = [port("x", ("batch", "new", D)), port("use_cache_branch", (1,), TensorProto.BOOL)]
    ports += [port(one, ("batch", HEADS, "past", SIZE)) for one in STATE]
    values.pop("embed")
    made = model(nodes, ports, ("y", *STATE.values()), values=values)
    return typed(made, **dict.fromkeys(STATE.values(), ("batch", HEADS, "all", SIZE)))


def test_a_model_in_three_parts() -> None:
    """A picture and words become vectors, and a merged decoder looks back on them."""
    eye = model([node("Reshape", "pixels flat", "f"), node("MatMul", "f w", "seen")],
                [port("pixels", ("batch", "patches", 2, 2))], ("seen",),
                values={"w": rng.standard_normal((4, D)).astype("f4"), "flat": np.array([0, 0, 4])})  # fmt: skip
    words = model([node("Gather", "table ids", "said", axis=0)], [port("ids", ("batch", "n"), INT64)], ("said",),
                  values={"table": WEIGHTS["embed"]})  # fmt: skip
    pixels = rng.standard_normal((BATCH, 3, 2, 2)).astype("f4")
    seen = fc.onnx.load(eye)(pixels).resolve(device="numpy")
    embed = fc.onnx.load(words)
    said = [embed(one).resolve(device="numpy") for one in (IDS[:, :2], IDS[:, 2:3], IDS[:, 3:4])]
    inputs = [np.concatenate([seen, said[0]], axis=1), said[1], said[2]]
    decode, got = fc.onnx.load(merged()), []
    with session(merged()) as steps:
        for at, x in enumerate(inputs):
            got.append(steps.step(x=x, use_cache_branch=np.array([at > 0]))["y"])
        assert steps.length == 7
        # A step without the cache begins anew.
        again = steps.step(x=inputs[0], use_cache_branch=np.array([False]))["y"]
        assert steps.length == 5
    np.testing.assert_array_equal(again, got[0])
    past = {name: np.zeros((BATCH, HEADS, 0, SIZE), "f4") for name in STATE}
    for at, x in enumerate(inputs):
        wanted = decode(x=x, use_cache_branch=np.array([at > 0]), **past)
        np.testing.assert_allclose(got[at], wanted.y.resolve(device="numpy"), rtol=1e-5, atol=1e-6)
        past = {name: wanted[present].resolve(device="numpy") for name, present in STATE.items()}


@pytest.mark.compiles
def test_states_are_kernels_on_a_device() -> None:
    """And the plan has room for a step at a time."""
    steps = session(decoder(), capacity=128, device="cpu")
    with steps:
        steps.step(ids=IDS[:, :2])
        ((_, opener),) = steps._kinds.values()
        told = str(opener.plan)
        assert told.count("(walk): state of") == 2
        assert "batch of 1 records" in told
