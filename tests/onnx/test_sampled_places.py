"""Numbers at other places: grids, deformed windows, regions, and windows put back, against loops in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import flowcompute as fc
from tests.onnx.models import INT64, model, node, one, port

rng = np.random.default_rng(19)
IMAGES = rng.standard_normal((3, 4, 6, 5)).astype("f4")


def at_place(image: np.ndarray, y: float, x: float) -> Any:
    """The numbers (C,) at a place of (C, H, W), linearly; outside are zeros."""
    made = np.zeros(len(image))
    for row, column in ((math.floor(y) + up, math.floor(x) + left) for up in (0, 1) for left in (0, 1)):
        if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
            made += image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return made


def streamed(nodes: Any, given: dict[str, np.ndarray], outputs: tuple[str, ...] = ("y",), opset: int = 22) -> Any:
    """What a model makes of streams, batch by batch; the same as of arrays."""
    ports = [port(name, ("N", *array.shape[1:]), INT64 if array.dtype == "i8" else 1) for name, array in given.items()]
    loaded = fc.onnx.load(model(nodes, ports, outputs, opset=opset))
    made = loaded(**{name: fc.source(array) for name, array in given.items()})
    made = made if len(outputs) == 1 else made[0]
    assert made.spec.is_stream
    got = made.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=64))
    resident = loaded(**given)
    resident = resident if len(outputs) == 1 else resident[0]
    np.testing.assert_array_equal(got, resident.resolve(device="numpy"), strict=True)
    return got


def test_a_grid_of_matrices_samples_each_record() -> None:
    """The spatial transformer: a regular grid, moved by a matrix for each image."""
    theta = np.stack([[[np.cos(a), -np.sin(a), 0.1], [np.sin(a), np.cos(a), -0.2]] for a in (0, 0.5, 2)]).astype("f4")
    nodes = [node("Constant", "", "size", value_ints=[3, 4, 4, 3]), node("AffineGrid", "t size", "g"),
             node("GridSample", "x g", "y")]  # fmt: skip
    loaded = fc.onnx.load(model(nodes, [port("x", IMAGES.shape), port("t", (3, 2, 3))], opset=22))
    got = loaded(fc.source(IMAGES), fc.source(theta)).resolve(device="numpy", strategy=fc.Strategy(batch_bytes=64))
    for record in range(3):
        for i in range(4):
            for j in range(3):
                x, y = theta[record] @ [(2 * j + 1) / 3 - 1, (2 * i + 1) / 4 - 1, 1]
                wanted = at_place(IMAGES[record], ((y + 1) * 6 - 1) / 2, ((x + 1) * 5 - 1) / 2)
                np.testing.assert_allclose(got[record, :, i, j], wanted, rtol=1e-4, atol=1e-5)


def test_a_grid_for_other_records_is_refused() -> None:
    theta = np.zeros((3, 2, 3), "f4")
    with pytest.raises(fc.onnx.UnsupportedError, match="for 2 records, and 3 matrices"):
        one("AffineGrid", [theta, np.array([2, 1, 4, 4])], opset=20)


def deformed(x: np.ndarray, weight: np.ndarray, offset: np.ndarray, mask: np.ndarray, groups: int) -> np.ndarray:
    """Deformable convolution with stride 2 and pads of 1, number by number."""
    parts = mask.shape[1] // 6
    height, width = offset.shape[2:]
    made = np.zeros((len(x), len(weight), height, width))
    own, each = x.shape[1] // parts, x.shape[1] // groups
    for n, i, j, tap in np.ndindex(len(x), height, width, 6):
        for part in range(parts):
            moved = offset[n, (part * 6 + tap) * 2 : (part * 6 + tap) * 2 + 2, i, j]
            seen = at_place(x[n], 2 * i - 1 + tap // 2 + moved[0], 2 * j - 1 + tap % 2 + moved[1])
            for channel in range(part * own, part * own + own):
                for o in range(len(weight)):
                    if o * groups // len(weight) == channel // each:
                        w = weight[o, channel % each, tap // 2, tap % 2]
                        made[n, o, i, j] += w * seen[channel] * mask[n, part * 6 + tap, i, j]
    return made


@pytest.mark.parametrize(("groups", "parts"), [(1, 1), (2, 2), (1, 4)])
def test_a_deformed_convolution(groups: int, parts: int) -> None:
    """Also of an image one number wide, and far outside of it."""
    x = IMAGES[:2, :, :, :1] if parts == 4 else IMAGES[:2]
    counts = ((x.shape[2] + 2 - 3) // 2 + 1, (x.shape[3] + 2 - 2) // 2 + 1)
    weight, bias = rng.standard_normal((4, 4 // groups, 3, 2)).astype("f4"), rng.standard_normal(4).astype("f4")
    offset = (3 * rng.standard_normal((2, parts * 12, *counts))).astype("f4")
    mask = rng.random((2, parts * 6, *counts)).astype("f4")
    how = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": groups, "offset_group": parts}
    got = one("DeformConv", [x, weight, offset, bias, mask], opset=22, **how)
    wanted = deformed(x, weight, offset, mask, groups) + bias[:, None, None]
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)


def test_windows_that_are_not_moved_are_a_convolution() -> None:
    weight = rng.standard_normal((2, 4, 3, 3)).astype("f4")
    nodes = [node("Constant", "", "w", value_floats=weight.reshape(-1).tolist()),
             node("Constant", "", "s", value_ints=list(weight.shape)), node("Reshape", "w s", "v"),
             node("DeformConv", "x v o", "y", pads=[1, 1, 1, 1])]  # fmt: skip
    got = streamed(nodes, {"x": IMAGES, "o": np.zeros((3, 18, 6, 5), "f4")})
    np.testing.assert_allclose(got, one("Conv", [IMAGES, weight], pads=[1, 1, 1, 1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_of_a_map(mode: str) -> None:
    """Regions are records: a stream of them reads a resident map. Some lie outside of it."""
    rois = np.array([[0, 0, 9, 9], [2, 1, 4, 11], [-9, 3, 2, 30], [90, 90, 99, 99]], "f4")
    which = np.array([0, 2, 1, 0])
    how = {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.5, "mode": mode}
    nodes = [node("RoiAlign", "x r i", "y", **how)]
    ports = [port("x", IMAGES.shape), port("r", ("N", 4)), port("i", ("N",), INT64)]
    loaded = fc.onnx.load(model(nodes, ports, opset=16), batch_axis={"r": 0, "i": 0})
    got = loaded(np.abs(IMAGES), fc.source(rois), fc.source(which))
    got = got.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=16))
    for region, (box, record) in enumerate(zip(rois / 2 - 0.5, which, strict=True)):
        for at in np.ndindex(2, 3):
            seen = []
            for sub in np.ndindex(2, 2):
                y = box[1] + (box[3] - box[1]) * (at[0] + (sub[0] + 0.5) / 2) / 2
                x = box[0] + (box[2] - box[0]) * (at[1] + (sub[1] + 0.5) / 2) / 3
                outside = not (-1 <= y <= 6 and -1 <= x <= 5)
                place = (min(max(y, 0), 5), min(max(x, 0), 4))
                seen.append(np.zeros(4) if outside else at_place(np.abs(IMAGES[record]), *place))
            if mode == "avg":
                np.testing.assert_allclose(got[(region, slice(None), *at)], np.mean(seen, 0), rtol=1e-4, atol=1e-5)
            else:
                # The standard takes the largest of the four weighted numbers, not of their sums.
                assert (got[(region, slice(None), *at)] <= np.max(seen, 0) + 1e-5).all()
    assert (got[3] == 0).all()


def test_a_region_of_no_record_names_its_index() -> None:
    given = [IMAGES, np.ones((1, 4), "f4"), np.array([3])]
    with pytest.raises(fc.FlowError, match=r"outside|out of range"):
        one("RoiAlign", given, opset=16, sampling_ratio=1)


def test_samples_that_follow_from_the_regions_are_refused() -> None:
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        one("RoiAlign", [IMAGES, np.ones((1, 4), "f4"), np.array([0])], opset=16)
    assert caught.value.reason == "unknown"


# -- windows ------------------------------------------------------------------------------------------


def largest(x: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows of 3 each 2, with pads of 1 before: the largest numbers and their places."""
    counts = [(size + 1 - 3) // 2 + 1 for size in x.shape[2:]]
    made, places = np.zeros((*x.shape[:2], *counts), x.dtype), np.zeros((*x.shape[:2], *counts), "i8")
    for at in np.ndindex(made.shape):
        cells = [(i, j) for i in range(2 * at[2] - 1, 2 * at[2] + 2) for j in range(2 * at[3] - 1, 2 * at[3] + 2)]
        cells = [(i, j) for i, j in cells if 0 <= i < x.shape[2] and 0 <= j < x.shape[3]]
        i, j = max(cells, key=lambda cell: x[(*at[:2], *cell)])
        first = (at[0] * x.shape[1] + at[1]) * x.shape[2] * x.shape[3]
        made[at], places[at] = x[(*at[:2], i, j)], first + (i + j * x.shape[2] if order else i * x.shape[3] + j)
    return made, places


@pytest.mark.parametrize("order", [0, 1])
def test_places_of_the_largest_numbers(order: int) -> None:
    how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 0], "storage_order": order}
    made = model([node("MaxPool", "x", "y i", **how)], [port("x", IMAGES.shape)], ["y", "i"])
    got = fc.resolve(*fc.onnx.load(made)(IMAGES), device="numpy")
    for one_, wanted in zip(got, largest(IMAGES, order), strict=True):
        np.testing.assert_array_equal(one_, wanted, strict=True)


def test_places_are_counted_over_records_and_so_not_of_a_stream() -> None:
    made = model([node("MaxPool", "x", "y i", kernel_shape=[2, 2])], [port("x", ("N", 4, 6, 5))], ["y", "i"])
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(made)(fc.source(IMAGES))
    assert caught.value.reason == "batch axis"


def test_numbers_go_back_to_where_they_were() -> None:
    """Pooled numbers and their places, record by record or all at once."""
    pooled, places = largest(IMAGES[:, :, :5], 0)
    wanted = np.zeros((3, 4, 5, 5), "f4")
    wanted.reshape(-1)[places] = pooled
    how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    got = streamed([node("MaxUnpool", "x i", "y", **how)], {"x": pooled, "i": places})
    np.testing.assert_array_equal(got, wanted, strict=True)
    larger = one("MaxUnpool", [pooled, places, np.array([3, 4, 7, 6])], opset=22, **how)
    np.testing.assert_array_equal(larger, np.pad(wanted, ((0, 0), (0, 0), (0, 2), (0, 1))))


@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_columns_are_added_up(dtype: str) -> None:
    """Overlapping blocks with gaps and pads; an infinity spoils its own places alone."""
    sizes, block, stride, gap = (6, 5), (2, 3), (2, 1), (3, 1)
    counts = [(size + 1 - (b - 1) * g - 1) // s + 1 for size, b, s, g in zip(sizes, block, stride, gap, strict=True)]
    columns = (10 * rng.standard_normal((2, 2 * 6, math.prod(counts)))).astype(dtype)
    columns = np.where(columns == columns[0, 0, 0], np.inf, columns).astype(dtype) if dtype == "f4" else columns
    wanted = np.zeros((2, 2, sizes[0] + 1, sizes[1] + 1), dtype)
    apart = columns.reshape(2, 2, *block, *counts)
    for i, j, k, m in np.ndindex(*block, *counts):
        wanted[:, :, k * 2 + i * 3, m + j] += apart[:, :, i, j, k, m]
    nodes = [node("Constant", "", "s", value_ints=list(sizes)), node("Constant", "", "b", value_ints=list(block)),
             node("Col2Im", "x s b", "y", strides=stride, dilations=gap, pads=[1, 0, 0, 1])]  # fmt: skip
    made = model(nodes, [port("x", ("N", *columns.shape[1:]), 1 if dtype == "f4" else TensorProto.INT32)])
    got = fc.onnx.load(made)(fc.source(columns)).resolve(device="numpy", strategy=fc.Strategy(batch_bytes=64))
    np.testing.assert_allclose(got, wanted[:, :, 1:, :-1], rtol=1e-5, atol=1e-4)
    assert got.dtype == dtype


def test_columns_of_other_blocks_are_refused() -> None:
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        one("Col2Im", [np.ones((1, 5, 4), "f4"), np.array([3, 3]), np.array([2, 2])])
    assert caught.value.reason == "invalid"


def test_absurd_items_are_refused() -> None:
    columns = np.ones((1, 4, 1), "f4")
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        one("Col2Im", [columns, np.array([1 << 40, 2]), np.array([2, 2])], strides=[1 << 41, 1])
    assert caught.value.reason == "unbounded"
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        one("AffineGrid", [np.ones((1, 2, 3), "f4"), np.array([1, 1, 1 << 40, 2])], opset=20)
    assert caught.value.reason == "unbounded"


# -- caches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_part_is_put_behind_what_each_record_has(mode: str) -> None:
    past, update = rng.standard_normal((3, 2, 5, 4)).astype("f4"), rng.standard_normal((3, 2, 2, 4)).astype("f4")
    begins = np.array([0, 3, 2 if mode == "linear" else 4])
    wanted = past.copy()
    for record, begin in enumerate(begins):
        wanted[record][:, [(begin + step) % 5 for step in range(2)]] = update[record]
    got = streamed([node("TensorScatter", "x u i", "y", mode=mode)], {"x": past, "u": update, "i": begins}, opset=24)
    np.testing.assert_array_equal(got, wanted, strict=True)
    first = one("TensorScatter", [past, update], opset=24, mode=mode)
    np.testing.assert_array_equal(first, np.concatenate([update, past[:, :, 2:]], 2), strict=True)


def test_a_part_that_reaches_beyond_the_cache_is_an_error() -> None:
    past = np.zeros((2, 1, 5, 4), "f4")
    with pytest.raises(fc.FlowError, match="5"):
        one("TensorScatter", [past, past[:, :, :2], np.array([0, 4])], opset=24)


def test_a_scan_of_records() -> None:
    """As of opset 8: each record by itself, its states and its results."""
    parts = [port(name, (2,)) for name in ("a", "x")]
    body = model([node("Add", "a x", "s"), node("Identity", "s", "k")], parts, ["s", "k"]).graph
    nodes = [node("Scan", "_ a x", "y k", body=body, num_scan_inputs=1, directions=[1])]
    made = fc.onnx.load(model(nodes, [port("a", (3, 2)), port("x", (3, 4, 2))], ["y", "k"], opset=8))
    first, x = rng.standard_normal((3, 2)).astype("f4"), rng.standard_normal((3, 4, 2)).astype("f4")
    last, kept = fc.resolve(*made(first, x), device="numpy")
    wanted = first[:, None] + np.cumsum(x[:, ::-1], axis=1)
    np.testing.assert_allclose(kept, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, wanted[:, -1], rtol=1e-5, atol=1e-6)
