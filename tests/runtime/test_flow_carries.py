"""What scans of a flow carry goes on in another flow; wide recurrences are kernels there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc

rng = np.random.default_rng(92)
WIDE = 1024


@fc.kernel
def added(total: Any, x: Any) -> Any:
    return total + x


def sums(width: int, name: str = "sums") -> tuple[Any, Any]:
    feed = fc.feed(shape=(width,), dtype="int64", name="x")
    return feed, fc.scan(added, feed, init=np.int64(0), name=name)


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.compiles)])
def test_a_scan_goes_on_where_another_has_stopped(device: str) -> None:
    """In a graph that does more, on the same numbers."""
    x = rng.integers(-9, 9, (5, WIDE))
    _, first = sums(WIDE)
    with fc.open_flow(first, device=device) as flow:
        flow.send(x[:3])
        flow.receive()
        carried = flow.carried()
    assert list(carried) == ["sums"]
    feed, second = sums(WIDE)
    with fc.open_flow(second * 2, feed + 1, device=device) as flow:
        flow.carry_on(carried)
        flow.send(x[3:])
        got, _ = flow.receive()
        assert flow.sent == {"x": 2}
    np.testing.assert_array_equal(got, 2 * np.cumsum(x, axis=0)[3:])


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.compiles)])
@pytest.mark.parametrize("before", [0, 5, 4095, 4096])
def test_a_scan_in_tiles_goes_on_at_its_place_alone(device: str, before: int) -> None:
    """Elsewhere what its tile has so far would be left out, without a word."""
    x = rng.integers(-9, 9, 9000)
    feed = fc.feed(dtype="int64", name="x")
    both = fc.stack([fc.cumulative_sum(feed), fc.nn.position(feed)], axis=1)
    with both.flow(device=device) as first, both.flow(device=device) as second:
        first.send(x[:5])
        first.receive()
        carried = first.carried()
        if before:
            second.send(x[:before])
            second.receive()
        if before % 4096 != 5:
            with pytest.raises(fc.RunError, match="another place in a tile"):
                second.carry_on(carried)
            return
        second.carry_on(carried)
        second.send(x[5:])
        wanted = np.stack([np.cumsum(x), np.arange(9000)], axis=1)
        np.testing.assert_array_equal(second.receive(), wanted[5:])


def test_what_no_scan_of_the_flow_carries_is_refused() -> None:
    with fc.open_flow(sums(4)[1], device="numpy") as flow, pytest.raises(fc.RunError, match="no such scan"):
        flow.carry_on({"total": {}})


def test_a_closed_flow_carries_nothing() -> None:
    with fc.open_flow(sums(4)[1], device="numpy") as flow:
        pass
    with pytest.raises(fc.RunError, match="closed"):
        flow.carried()
    with pytest.raises(fc.RunError, match="closed"):
        flow.carry_on({})


@pytest.mark.parametrize(("width", "work"), [(WIDE, True), (WIDE - 1, False)])
def test_wide_recurrences_are_kernels_where_records_are_sent_by_hand(width: int, work: bool) -> None:
    opener = fc.open_flow(sums(width)[1], device="cpu")
    assert ("(walk): sums" in str(opener.plan)) is work
    assert ("scanned on the host" in str(opener.plan.reasons)) is not work


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.*was made on")
def test_what_a_wide_recurrence_carries_is_frozen(tmp_path: Any) -> None:
    """A checkpoint of a flow on the host is one of a flow on a device, and the other way round."""
    x, path = rng.integers(-9, 9, (4, WIDE)), tmp_path / "kept"
    with fc.open_flow(sums(WIDE)[1], device="numpy") as flow:
        flow.send(x[:2])
        flow.receive()
        flow.freeze(path)
    with fc.open_flow(sums(WIDE)[1], device="cpu", checkpoint=path) as flow:
        flow.send(x[2:])
        np.testing.assert_array_equal(flow.receive(), np.cumsum(x, axis=0)[2:])
        flow.freeze()
    with fc.open_flow(sums(WIDE)[1], device="numpy", checkpoint=path) as flow:
        flow.send(x[:1])
        np.testing.assert_array_equal(flow.receive()[0], x.sum(axis=0) + x[0])
