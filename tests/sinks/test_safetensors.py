"""Files of several arrays by name: their bytes, what reads them back, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.destination import Destination
from flowcompute.errors import RunError, SpecError, SpecTypeError
from flowcompute.sinks.safetensors_sink import TYPES
from flowcompute.spec import SUPPORTED_DTYPES, Spec
from flowcompute.testing.contracts import DestinationContract, sample
from tests.properties.cases import cases

RUN: dict[str, Any] = {"device": "numpy", "progress": False}


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Read a file as its format is described, without the code under test."""
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    assert begin % 64 == 0
    header = json.loads(raw[8:begin])
    dtypes = {name: dtype for dtype, name in TYPES.items()}
    found, end = {}, 0
    for name, one in header.items():
        first, last = one["data_offsets"]
        assert first == end, "there is no gap"
        dtype, end = dtypes[one["dtype"]], last
        assert first % dtype.itemsize == 0
        found[name] = np.frombuffer(raw[begin + first : begin + last], dtype).reshape(one["shape"])
    assert begin + end == len(raw)
    return found


def assert_equal(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


class TestSafetensors(DestinationContract):
    def make(self, folder: Path) -> Destination:
        return fc.save(folder / "y.safetensors")

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        assert value == str(folder / "y.safetensors")
        return arrays(Path(value))["data"]


@cases(15)
@given(data=st.data())
def test_several_values_of_any_dtype_and_shape(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    names = data.draw(st.lists(st.text("abc.é/\"'\\ 0", min_size=1, max_size=5), min_size=1, max_size=6, unique=True))
    shapes = st.lists(st.integers(0, 4), max_size=3)
    given = {name: sample(data.draw(st.sampled_from(SUPPORTED_DTYPES)), tuple(data.draw(shapes))) for name in names}
    path = tmp_path_factory.mktemp("several") / "w.safetensors"
    made = {name: fc.constant(array) for name, array in given.items()} >> fc.save(path)
    assert fc.resolve(made, **RUN) == str(path)
    assert_equal(arrays(path), given)
    read = fc.weights(path)
    again = fc.resolve(*(read[name] for name in given), **RUN)
    pairs = zip(given.values(), again if len(given) > 1 else [again], strict=True)
    assert all(np.asarray(one).tobytes() == other.tobytes() for other, one in pairs)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_what_a_run_computes_by_name(device: str, tmp_path: Path) -> None:
    x = fc.source(np.arange(12.0, dtype="f4").reshape(4, 3))
    w = fc.parameter(np.ones((3, 2), "f4"), name="w")
    job = {"w": w * 2, "gradient": fc.grad((x @ w).sum(), w)} >> fc.save(tmp_path / "w.safetensors")
    fc.run(job, x.sum(), device=device, progress=False)
    expected = {"w": np.full((3, 2), 2, "f4"), "gradient": np.repeat(np.array([[18], [22], [26]], "f4"), 2, 1)}
    assert_equal(arrays(tmp_path / "w.safetensors"), expected)


def test_elements_bring_their_names(tmp_path: Path) -> None:
    w, b = fc.parameter(np.ones(2), name="w"), fc.constant(np.int8(3), name="b")
    fc.run(
        [w, b, (w + 1).named("next")] >> fc.save(tmp_path / "several.safetensors"),
        w >> fc.save(tmp_path / "one.bin", format="safetensors"),
        fc.source(np.arange(5)) >> fc.save(tmp_path / "stream.safetensors"),
        fc.iterate([np.arange(5)], shape=(), dtype="int64", name="ticks") >> fc.save(tmp_path / "ticks.safetensors"),
        **RUN,
    )
    assert_equal(
        arrays(tmp_path / "several.safetensors"), {"w": np.ones(2), "next": np.full(2, 2.0), "b": np.array(3, "i1")}
    )
    assert_equal(arrays(tmp_path / "one.bin"), {"w": np.ones(2)})
    assert_equal(arrays(tmp_path / "stream.safetensors"), {"data": np.arange(5)})
    assert_equal(arrays(tmp_path / "ticks.safetensors"), {"ticks": np.arange(5)})


def test_a_file_of_weights_is_written_again(tmp_path: Path) -> None:
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    fc.run({"w": fc.constant(np.ones((2, 3))), "b": fc.constant(np.float32(1))} >> fc.save(first), **RUN)
    fc.run(fc.weights(first) >> fc.save(second), **RUN)
    assert first.read_bytes() == second.read_bytes()


def test_the_header_has_one_size_for_any_length() -> None:
    sink: Any = fc.save("y.safetensors")
    spec = fc.source(np.ones((3, 7), "f4")).spec
    headers = [sink.header(spec, length) for length in (0, 1, 9, 10, 12345, 10**12, 2**57)]
    assert len({len(header) for header in headers}) == 1
    shapes = [json.loads(header[8:])["data"]["shape"] for header in headers]
    assert shapes[-1] == [2**57, 7]


def test_frozen_and_thawed(tmp_path: Path) -> None:
    data = np.arange(3000.0).reshape(1000, 3)
    np.save(tmp_path / "x.npy", data)
    x, kept = fc.open(tmp_path / "x.npy"), tmp_path / "kept"
    job = {"sum": x.sum(axis=0), "most": x.max(), "n": fc.constant(np.int64(4))} >> fc.save(tmp_path / "w.safetensors")
    with pytest.raises(RunError, match="was frozen"):
        fc.run(job, **RUN, strategy=fc.Strategy(batch_bytes=480), checkpoint=kept, on_batch=lambda run: run.freeze())
    assert not (tmp_path / "w.safetensors").exists()
    fc.thaw(kept).resolve(**RUN)
    expected = {"sum": data.sum(0), "most": np.array(2999.0), "n": np.array(4)}
    assert_equal(arrays(tmp_path / "w.safetensors"), expected)


def test_other_names_are_another_job(tmp_path: Path) -> None:
    total, kept = fc.source(np.ones(3)).sum(), {**RUN, "checkpoint": tmp_path / "kept"}
    fc.run({"a": total, "b": total + 1} >> fc.save(tmp_path / "w.safetensors"), **kept)
    with pytest.raises(fc.CheckpointError, match="tensors"):
        fc.run({"a": total, "c": total + 1} >> fc.save(tmp_path / "w.safetensors"), **kept)


W = fc.constant(np.ones(3), name="w")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "cannot write nothing"),
        ({"x": fc.source(np.ones(3))}, "resident values"),
        ({"": W}, "under this name"),
        ({"__metadata__": W}, "under this name"),
        ({"a\n": W}, "under this name"),
        ({1: W}, "under this name"),
        ({"a" * 5000: W}, "at most 4096 characters"),
        ([W, W], "two values of the name 'w'"),
        ([W * 2], "give names"),
        (3, "values by name"),
        ("w", "cannot compose|values by name|cannot take"),
        ({"w": object()}, "cannot make an element"),
    ],
)
def test_what_cannot_be_written_by_name_is_refused(given: Any, text: str) -> None:
    with pytest.raises(SpecError, match=text):
        given >> fc.save("never.safetensors")


def test_other_formats_take_one_element() -> None:
    for several in ({"w": W}, [W], np.ones(3)):
        with pytest.raises(SpecTypeError, match="cannot write what is no element"):
            several >> fc.save("never.npy")


def test_packed_bytes_have_no_gradient() -> None:
    w = fc.parameter(np.ones(3))
    sink: Any = {"w": w} >> fc.save("never.safetensors")
    with pytest.raises(SpecError, match="cannot find the gradient of pack"):
        fc.grad(sink.input.astype("f4").sum() + math.pi, w)
