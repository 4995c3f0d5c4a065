"""Where operations are placed when a run has several places to compute, and what is said of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.engine.split_backend import SplitBackend
from flowcompute.errors import PlanError, SpecError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.discovery import select_device
from flowcompute.reference import NumpyBackend
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.steps import RegionStep

DRAW = np.random.default_rng(5)
X = fc.source(DRAW.standard_normal((1000, 64), dtype=np.float32))
W = DRAW.standard_normal((64, 64), dtype=np.float32)


def regions(plan: Plan) -> dict[str, list[str]]:
    """The operations of each region, by where it is computed."""
    found: dict[str, list[str]] = {}
    for step in plan.steps:
        if isinstance(step, RegionStep):
            name = plan.backend.placements[step.placement].capabilities.name
            where = "numpy" if name == "numpy" else "device"
            found.setdefault(where, []).append(" ".join(plan.graph.nodes[i].name for i in step.region.nodes))
    return found


def test_what_is_pinned_is_computed_there_and_nothing_else() -> None:
    h = fc.tanh(X @ W)
    y = (h * 3).on("numpy")
    made = fc.plan(y @ W, device="cpu")
    assert regions(made) == {"device": ["matmul tanh", "matmul_2"], "numpy": ["multiply"]}
    assert made.backend.capabilities.name == f"{select_device('cpu', False).capabilities.name} and numpy"
    text = str(made)
    assert "device at multiply: on numpy: pinned by on('numpy') at " in text
    assert f"{__file__.rsplit('/', 1)[1]}:" in text.split("pinned by on('numpy') at ")[1].split("\n", maxsplit=1)[0]


def test_what_one_line_makes_goes_with_it() -> None:
    """A product of half formats is a product and a cast; who pins it does not know."""
    half = fc.source(DRAW.standard_normal((100, 32)).astype("f2"))
    weights = DRAW.standard_normal((32, 32)).astype("f2")
    before = half * 2
    y = (before @ weights).on("numpy")
    after = y * 2
    made = fc.plan(after @ weights, device="cpu")
    assert {"matmul.matmul", "matmul"} <= set(" ".join(regions(made)["numpy"]).split())
    assert "device at matmul.matmul: on numpy: pinned with matmul, for which its line made it" in str(made)


def test_what_is_shared_does_not_go_with_it() -> None:
    h = X @ W
    y = fc.tanh(h).on("numpy")
    made = fc.plan(y, h, device="cpu")
    assert regions(made) == {"device": ["matmul"], "numpy": ["tanh"]}


def test_fewer_bytes_cross() -> None:
    """Eight wide values are made of one; what reads them is pinned, and so all of them are made there."""
    narrow = fc.source(np.ones((1000, 1), np.float32))
    wide = narrow + np.ones((1, 512), np.float32)
    y = fc.sum(wide, axis=1).on("numpy")
    z = fc.tanh(X @ W)
    made = fc.plan(y, z, device="cpu")
    assert regions(made) == {"device": ["matmul tanh"], "numpy": ["add sum"]}
    assert "device at add: on numpy: fewer bytes are transferred than on the first device" in str(made)


def test_much_work_stays_on_the_best_device() -> None:
    product = X @ W
    y = (product * 2).on("numpy")
    assert regions(fc.plan(y, device="cpu"))["device"] == ["matmul"]


def test_the_rest_stays_where_device_says() -> None:
    for device in ("numpy", ["numpy"]):
        made = fc.plan((X * 2).on("cpu"), X + 1, device=device)  # type: ignore[arg-type]
        assert regions(made) == {"device": ["multiply"], "numpy": ["add"]}
        assert ": on('cpu') names it" in str(made)
    assert "device at numpy: on('numpy') names it" in str(fc.plan((X * 2).on("numpy"), X + 1, device="cpu"))


def test_a_plan_on_one_seat_is_a_plan_of_that_device() -> None:
    y = (X * 2).on("numpy")
    made = fc.plan(y, device="cpu")
    assert made.backend.capabilities.name == "numpy"
    assert not made.kernels
    same = fc.plan((X * 2).on("cpu"), device="cpu")
    assert same.backend.capabilities.name == fc.plan(X * 2, device="cpu").backend.capabilities.name
    assert fc.plan((X * 2).on("cpu"), device="numpy").backend.capabilities.code_shape == "cpu"


def without_float64() -> OpenCLBackend:
    device = copy.copy(select_device("cpu", needs_float64=False))
    device.capabilities = replace(device.capabilities, name="single", float64=False)
    return OpenCLBackend(device)


def planned_on(placements: Sequence[OpenCLBackend | NumpyBackend], *roots: Element) -> Plan:
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=SplitBackend(placements, {"numpy": 1})):
        return fc.plan(*roots)


def test_what_the_first_cannot_compute_goes_to_the_next() -> None:
    exact = fc.source(np.arange(100.0)).sum()
    made = planned_on([without_float64(), NumpyBackend()], exact, X * 2)
    assert regions(made) == {"device": ["multiply"], "numpy": ["sum"]}
    assert "device at sum: on numpy: it is float64, which single does not have" in str(made)


def test_what_the_host_computes_is_not_said_to_be_on_a_device() -> None:
    made = str(fc.plan(fc.quantile(X[:, 0], 0.5).on("numpy"), X + 1, device="cpu"))
    assert "device at quantile: on the host, wherever it is pinned" in made
    assert "pinned by on(" not in made
    scanned = fc.cumulative_sum(fc.source(np.ones((10, 2))), axis=0)
    single = str(planned_on([without_float64(), NumpyBackend()], scanned.on("numpy") * 2, X * 2))
    assert "device at cumulative_sum: on the host" in single


def test_what_none_can_compute_is_refused() -> None:
    exact = fc.source(np.arange(100.0)).sum()
    with pytest.raises(PlanError, match="is float64, which single does not have") as caught:
        planned_on([without_float64(), without_float64()], exact)
    assert "single, single" in str(caught.value)
    assert "device=[" in str(caught.value)


def test_a_pin_that_cannot_be_is_an_error_that_names_it() -> None:
    text = fc.opencl("float twice(float v) { return 2 * v; }", X).on("numpy")
    with pytest.raises(PlanError, match="which NumPy cannot run") as caught:
        fc.plan(text, X * 2, device="cpu")
    assert "pinned by on('numpy') at" in str(caught.value)
    nowhere = (X * 2).on("gpu:7")
    with pytest.raises(PlanError, match="does not exist") as caught:
        fc.plan(nowhere, device="cpu")
    assert caught.value.element == "multiply"
    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda: X, "MemorySource"),
        (lambda: fc.host(np.sin, X, dtype="f4"), "kind host"),
        (lambda: X[X[:, 0] > 0], "kind select"),
        (lambda: fc.window(X, 3), "kind window"),
        (lambda: fc.constant(W), "Constant"),
    ],
)
def test_what_no_device_computes_cannot_be_pinned(made: object, what: str) -> None:
    with pytest.raises(SpecError, match="cannot be pinned") as caught:
        made().on("cpu")  # type: ignore[operator]
    assert what in str(caught.value)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_pin_names_a_device(name: object) -> None:
    with pytest.raises(SpecError, match="cannot pin to this device"):
        (X * 2).on(name)  # type: ignore[arg-type]


def test_of_several_pins_on_one_element_the_last_holds() -> None:
    there = fc.plan(fc.tanh(X @ W).on("cpu").on("numpy") @ W, device="cpu")
    assert [node.pin.device for node in there.graph.nodes if node.pin] == ["numpy"]
    assert "numpy" in regions(there)
    back = fc.plan(fc.tanh(X @ W).on("numpy").on("cpu") @ W, device="cpu")
    assert [node.pin.device for node in back.graph.nodes if node.pin] == ["cpu"]
    assert set(regions(back)) == {"device"}


def test_counts_of_a_histogram_are_pinned_apart_from_its_edges() -> None:
    counts, edges = fc.histogram(X[:, 0], bins=10, range=(-3, 3))
    assert "histogram: on the host, wherever it is pinned" in str(fc.plan(counts.on("numpy"), device="cpu"))
    with pytest.raises(SpecError, match="cannot be pinned"):
        edges.on("numpy")


def test_auto_may_stand_in_a_list() -> None:
    assert regions(fc.plan(X * 2, device=["auto", "numpy"])) == {"device": ["multiply"]}
    with pytest.raises(PlanError, match="'gpu:9': it does not exist"):
        fc.plan(X * 2, device=["gpu:9", "numpy"])


def test_several_devices_are_named_best_first() -> None:
    made = fc.plan(X * 2, device=["cpu", "numpy"])
    assert regions(made) == {"device": ["multiply"]}
    with pytest.raises(PlanError, match="computes everything") as caught:
        fc.plan(X * 2, device=["numpy", "cpu"])
    assert caught.value.hint == 'device=["cpu", "numpy"]'
    for wrong in ([], ["cpu", 3], 3, 0, {"cpu"}):
        with pytest.raises(PlanError, match="a list of devices' names") as caught:
            fc.plan(X * 2, device=wrong)  # type: ignore[arg-type]
        assert str(caught.value.hint).startswith('name one, device="cpu", or several, device=["gpu", "cpu"]')
        assert ("no order" in str(caught.value.hint)) == isinstance(wrong, set)


@pytest.mark.parametrize(("given", "name"), [("CPU", "cpu"), (" Cpu:0", "cpu:0"), ("NumPy", "numpy"), ("AUTO", "auto")])
def test_kinds_of_devices_are_small_or_capital_letters(given: str, name: str) -> None:
    assert fc.plan(X * 2, device=given).config.device == (name,)
    assert regions(fc.plan((X * 2).on(given), device="cpu")) == regions(fc.plan((X * 2).on(name), device="cpu"))


def test_no_device_is_what_leaving_it_out_is() -> None:
    assert fc.plan(X * 2, device=None).reasons == fc.plan(X * 2).reasons


def test_a_pin_is_to_one_device() -> None:
    with pytest.raises(PlanError, match="fits no device") as caught:
        fc.plan((X * 2).on("cpu,numpy"), device="cpu")
    assert str(caught.value.hint).startswith("name one device")


def test_only_seats_with_kernels_have_workers() -> None:
    """What NumPy makes lies in this process: the plan counts it where it is, and not as seen by a worker."""
    made = fc.plan((X * 2).on("numpy") @ W, device="cpu", isolate=True)
    seen = {what.split(" (shared")[0].rsplit(" x ", 1)[0] for what, _ in made.memory.items if "shared" in what}
    assert seen == {"constant", "matmul", "multiply"}
    assert "multiply (between kernels) x 1" in dict(made.memory.items)


def test_a_pin_makes_another_graph_and_the_same_value() -> None:
    plain, pinned = X * 2, (X * 2).on("cpu")
    assert plain.hash != pinned.hash
    assert pinned.hash == (X * 2).on(" cpu ").hash
    assert pinned.spec == plain.spec


def test_what_is_written_twice_is_computed_once_where_either_is_pinned() -> None:
    made = fc.plan(X * 2, (X * 2).on("numpy"), X + 1, device="cpu")
    assert regions(made) == {"numpy": ["multiply"], "device": ["add"]}
    summed = fc.scan(sum_up, X, init=np.zeros(64, np.float32))
    scans = [node for node in fc.plan(summed, summed.on("cpu").on("numpy"), device="cpu").graph.nodes if node.pin]
    assert [node.pin.device for node in scans if node.pin] == ["numpy"]
    assert not regions(fc.plan(summed, summed.on("numpy"), device="cpu"))
    with pytest.raises(SpecError, match="one operation on two devices") as caught:
        fc.plan((X * 2).on("cpu"), (X * 2).on("numpy"), device="cpu")
    assert "on('numpy'), and on('cpu') at " in str(caught.value)


@fc.kernel
def sum_up(total, number):  # type: ignore[no-untyped-def]
    return total + number
