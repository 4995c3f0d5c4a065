"""Keys and values on a device with memory of its own take as much of it as they need so far."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.scans.cache_places import RowPlaces
from flowcompute.errors import DeviceFullError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.memory.device_buffers import DeviceArena
from flowcompute.gpu.memory.growing_rows import DeviceRows
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.ir import attention_rows, rows_taken
from tests.gpu.shapes import gpu_shaped
from tests.gpu.test_self_attention import drawn, joined, split

pytestmark = pytest.mark.compiles

ROW_BYTES = 2 * 2 * 16 * 4
"""Bytes of the keys and values of a record: two heads of 16 numbers each."""
EVERY = joined(drawn(230, 4, 2, 16, 16))
CONTEXT = 50_000
FIRST_ROWS = 32
"""In place of those that a device takes first, so that there are borders among few records."""


class Device:
    """Memory of the device: how much is taken, and what is left of each buffer that it ever gave.

    Attributes:
        left: buffers that it has room for; None for any number.
    """

    def __init__(self) -> None:
        self.left: int | None = None
        self._arenas: list[DeviceArena] = []
        self._buffers: list[Any] = []

    def take(self, arena: DeviceArena, size: int) -> Any:
        if self.left is not None:
            if self.left == 0:
                raise DeviceFullError("cannot allocate a buffer", got="as told")
            self.left -= 1
        if arena not in self._arenas:
            self._arenas.append(arena)
        made = _ALLOCATE(arena, size)
        self._buffers.append(made)
        return made

    @property
    def bytes(self) -> int:
        """Bytes that are in use now: no buffer is held by anybody that was given back."""
        gc.collect()
        places = range(len(self._buffers))
        # One reference is that of the list, one that of the argument.
        held = sum(self._buffers[at].size for at in places if sys.getrefcount(self._buffers[at]) > 2)
        assert held == sum(one.allocated_bytes for one in self._arenas)
        return held

    @property
    def peak(self) -> int:
        return sum(one.peak_bytes for one in self._arenas)


_ALLOCATE = DeviceArena._allocate


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    with (
        mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()),
        mock.patch.object(DeviceArena, "_allocate", lambda arena, size: made.take(arena, size)),
        mock.patch.object(attention_rows, "FIRST_ROWS", FIRST_ROWS),
    ):
        yield made


def attending(x: fc.Element, window: int | None = None, slots: int = 1) -> fc.Element:
    """Two layers, whose texts are numbered where there are slots."""
    text = x[:, 128].astype("int32") if slots > 1 else None
    options: dict[str, Any] = {"window": window, "context": CONTEXT, "text": text, "slots": slots}
    first = fc.nn.self_attention(*split(x[:, :128]), **options)
    q, k, v = split(x[:, :128])
    return fc.reshape(fc.nn.self_attention(q + first, k, v, **options), (-1, 64))


def numbered(slots: int) -> np.ndarray:
    """Records of several texts, which take different turns."""
    if slots == 1:
        return EVERY
    text = np.random.default_rng(1).choice(slots, len(EVERY), p=[0.6, *[0.4 / (slots - 1)] * (slots - 1)])
    return np.concatenate([EVERY, text[:, None].astype(np.float32)], axis=1)


def fed(window: int | None, slots: int) -> fc.Element:
    return attending(fc.feed((128 + (slots > 1),), dtype="float32"), window, slots)


def whole(data: np.ndarray, window: int | None, slots: int) -> np.ndarray:
    made: np.ndarray = attending(fc.source(data), window, slots).resolve(device="gpu", progress=False)
    return made


def one_by_one(flow: Any, data: np.ndarray, parts: list[np.ndarray]) -> None:
    for record in data:
        flow.send(record[None])
        parts.append(flow.receive())


PIECES = [1, 1, 50, 0, *[1] * 30, 33, *[1] * 5, 70, *[2] * 10]


@pytest.mark.parametrize(("window", "slots"), [(None, 1), (20, 1), (None, 3), (20, 3)])
def test_bits_are_those_of_all_at_once(device: Device, window: int | None, slots: int) -> None:
    data = numbered(slots)
    expected = whole(data, window, slots)
    with fed(window, slots).flow(device="gpu") as flow:
        parts = []
        for piece in np.split(data, np.cumsum(PIECES)):
            flow.send(piece)
            parts.append(flow.receive())
        assert np.concatenate(parts).tobytes() == expected.tobytes()


@pytest.mark.parametrize("window", [None, 20])
def test_a_device_takes_as_much_as_records_need(device: Device, window: int | None) -> None:
    """What is taken follows the records so far: less than twice their rows, whatever the context."""
    with fed(window, 1).flow(device="gpu") as flow:
        beside = None
        for sent in range(0, 230, 5):
            flow.send(EVERY[sent : sent + 5])
            flow.receive()
            rows = min(sent + 5, 10_000 if window is None else 2 * (window + 63)) + 63
            # Sizes of buffers are rounded up by an eighth at most.
            most = 2 * ROW_BYTES * max(2 * rows, 2 * FIRST_ROWS) * 9 // 8
            beside = device.bytes if beside is None else beside
            assert device.bytes <= beside + most
        assert beside is not None
        assert beside < 2 * ROW_BYTES * 2 * FIRST_ROWS * 9 // 8 + (1 << 17)
        planned = sum(size for name, size in flow.plan.memory.device_items if "keys and values" in name)
        assert planned > 2 * ROW_BYTES * (CONTEXT if window is None else 2 * window)


def test_the_plan_bounds_what_is_taken(device: Device) -> None:
    """A text that fills its context takes what the plan has counted, with what is copied on the way."""
    made = fc.nn.self_attention(*split(fc.feed((128,), dtype="float32")), context=220)
    with made.flow(device="gpu") as flow:
        for piece in np.split(EVERY[:220], np.arange(0, 220, 9)):
            flow.send(piece)
            flow.receive()
        # Sizes of buffers are rounded up.
        assert device.peak <= flow.plan.memory.device_bytes * 9 // 8 + (1 << 13)
        assert any("grow" in name for name, _ in flow.plan.memory.device_items)


@pytest.mark.parametrize("slots", [1, 3])
def test_launches_are_looked_up_anew_at_growth_only(device: Device, slots: int) -> None:
    data, looked, grown = numbered(slots), list[int](), list[int]()
    real = rows_taken

    def taken(rows: int, most: int) -> int:
        grown.append(len(looked))
        return real(rows, most)

    with (
        fed(None, slots).flow(device="gpu") as flow,
        mock.patch.object(OpenCLRunner, "_argument", autospec=True, side_effect=OpenCLRunner._argument) as argument,
        mock.patch("flowcompute.engine.scans.cache_places.rows_taken", taken),
    ):
        for record in data:
            argument.reset_mock()
            flow.send(record[None])
            flow.receive()
            looked.append(argument.call_count)
    assert 2 <= len(grown) <= 6, "the room was doubled"
    anew = {number for number, calls in enumerate(looked) if calls > min(looked)}
    assert anew <= {*range(3), *(at + more for at in grown for more in range(3))}


@pytest.mark.parametrize("slots", [1, 3])
def test_rows_that_a_window_has_passed_are_moved_by_the_device(device: Device, slots: int) -> None:
    data, window = numbered(slots), 20
    crossed: list[int] = []
    up, down = Transfers.upload, Transfers.download

    def upload(self: Transfers, array: np.ndarray, *rest: Any, **more: Any) -> Any:
        crossed.append(array.nbytes)
        return up(self, array, *rest, **more)

    def download(self: Transfers, buffer: Any, array: np.ndarray, *rest: Any, **more: Any) -> None:
        crossed.append(array.nbytes)
        down(self, buffer, array, *rest, **more)

    with (
        fed(window, slots).flow(device="gpu") as flow,
        mock.patch.object(Transfers, "upload", upload),
        mock.patch.object(Transfers, "download", download),
        mock.patch.object(RowPlaces, "drop", autospec=True, side_effect=RowPlaces.drop) as drops,
    ):
        for number, record in enumerate(np.tile(data, (3, 1))):
            if number == 50:
                crossed.clear()
            flow.send(record[None])
            flow.receive()
    assert slots > 1 or drops.call_count > 0
    assert max(crossed) <= max(data[0].nbytes, 64 * 4)


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("second", ["numpy", "gpu"])
def test_a_frozen_flow_goes_on_elsewhere(device: Device, tmp_path: Path, slots: int, second: str) -> None:
    data, at = numbered(slots), 133
    expected = whole(data, None, slots)
    with fed(None, slots).flow(device="gpu") as flow:
        for piece in np.split(data[:at], [50, 51, 52, 53, 54, 120]):
            flow.send(piece)
            flow.receive()
        flow.freeze(tmp_path / "kept")
        flow.send(data[at : at + 9])
        assert flow.receive().tobytes() == expected[at : at + 9].tobytes()
    size = sum(path.stat().st_size for path in (tmp_path / "kept").rglob("*"))
    assert size < 2 * at * ROW_BYTES + 30_000, "only rows that a later record sees are kept"
    warned = nullcontext() if second == "gpu" else pytest.warns(fc.CheckpointWarning, match="error bounds")
    with warned, fc.thaw(tmp_path / "kept").flow(device=second) as flow:
        parts = []
        for piece in np.split(data[at:], [1, 2, 30]):
            flow.send(piece)
            parts.append(flow.receive())
    rest = np.concatenate(parts)
    if second == "gpu":
        assert rest.tobytes() == expected[at:].tobytes()
    np.testing.assert_allclose(rest, expected[at:], rtol=2e-5, atol=2e-6)


@pytest.mark.filterwarnings("ignore::flowcompute.DeviceWarning")
@pytest.mark.parametrize("slots", [1, 3])
def test_where_there_is_no_room_for_more_nothing_is_lost(device: Device, tmp_path: Path, slots: int) -> None:
    """There is room for the keys of the first layer, and for no values beside them."""
    data, sent = numbered(slots), 60
    expected = whole(data, None, slots)
    real = DeviceRows.make_room

    def make_room(rows: DeviceRows, room: int, used: Sequence[int]) -> None:
        device.left = 1
        try:
            real(rows, room, used)
        finally:
            device.left = None

    with fed(None, slots).flow(device="gpu") as flow:
        flow.send(data[:sent])
        parts = [flow.receive()]
        before = device.bytes
        with (
            mock.patch.object(DeviceRows, "make_room", make_room),
            pytest.raises(DeviceFullError, match=r"(?s)cannot compute the smallest batch.*no room.*as told"),
        ):
            one_by_one(flow, data[sent:], parts)
        sent += len(parts) - 1
        assert device.bytes <= before
        assert flow.sent == {flow.plan.passes[0].sources[0].name: sent}
        flow.freeze(tmp_path / "kept")
        flow.send(data[sent:])
        parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == expected.tobytes()
    with fc.thaw(tmp_path / "kept").flow(device="gpu") as flow:
        flow.send(data[sent:])
        assert flow.receive().tobytes() == expected[sent:].tobytes()


def test_texts_that_are_over_leave_their_rows_to_others(device: Device) -> None:
    """Many short texts in a row take no more than the longest of them needs."""
    lengths = [3, 30, 1, 22, 9] * 3
    text = np.repeat(np.arange(len(lengths)), lengths).astype(np.float32)
    sent = fc.feed((129,), dtype="float32")
    made = fc.nn.self_attention(*split(sent[:, :128]), text=sent[:, 128].astype("int32"), context=CONTEXT)
    records = np.concatenate([EVERY[: len(text)], text[:, None]], axis=1)
    source = fc.source(records)
    alike = fc.nn.self_attention(*split(source[:, :128]), text=source[:, 128].astype("int32"), context=CONTEXT)
    expected = alike.resolve(device="gpu", progress=False)
    with made.flow(device="gpu") as flow:
        parts = []
        for record in records:
            flow.send(record[None])
            parts.append(flow.receive())
        assert device.bytes < ROW_BYTES * 256 + (1 << 15)
    assert np.concatenate(parts).tobytes() == expected.tobytes()


@pytest.mark.parametrize("most", [1, 63, 255, 256, 511, 512, 513, 50_113])
def test_rooms_are_halves_of_the_most(most: int) -> None:
    rooms = [rows_taken(rows, most) for rows in range(1, most + 1)]
    assert rooms == sorted(rooms)
    for rows, room in enumerate(rooms, 1):
        assert rows <= room <= max(2 * rows, 2 * attention_rows.FIRST_ROWS, 1)
        assert room <= most
    if most > 512:
        assert rooms[0] < 512
        assert len({*rooms}) < 20
