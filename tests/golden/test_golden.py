"""The text of a dozen kernels. A change of text is a commit of its own that says why.

To write them anew: FLOWCOMPUTE_GOLDEN=write scripts/test tests/golden
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.nn import attention_part
from flowcompute.gpu.render.renderer import render
from flowcompute.graph.graph import Graph, build_graph
from flowcompute.ir.capabilities import DeviceCapabilities
from flowcompute.rewrite import multiply_bytes, multiply_halves
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.planner import make_plan
from flowcompute.strategy.config import Config, Precision
from flowcompute.strategy.strategy import Strategy

FOLDER = Path(__file__).parent
CPU = DeviceCapabilities("a CPU", "cpu", "cpu", True, True, 1 << 33, 1 << 32, 1 << 15, 2)
GPU = replace(CPU, name="a GPU", kind="gpu", code_shape="gpu", host_memory=False)
NVIDIA = replace(GPU, name="an NVIDIA GPU", shuffles=True, tensor_cores=True, local_bytes=227 << 10)
HOPPER = replace(NVIDIA, name="a Hopper GPU", warp_groups=True)


def on_paper(capabilities: DeviceCapabilities) -> BackendDescription:
    """A device that plans can be made for, and that need not be there."""
    return BackendDescription(capabilities, render)


def rows(columns: int, dtype: str = "f4") -> fc.Element:
    return fc.source(np.zeros((8, columns), dtype), name="x")


def numbers(dtype: str = "f4") -> fc.Element:
    return fc.source(np.zeros(8, dtype), name="x")


def softmax(x: fc.Element) -> fc.Element:
    e = fc.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def below_the_largest(x: fc.Element) -> fc.Element:
    return x - x.max(axis=1, keepdims=True)


def normalised(x: fc.Element) -> fc.Element:
    return x / fc.sqrt((x * x).sum(axis=1, keepdims=True))


def beside_itself(x: fc.Element) -> fc.Element:
    return (x * fc.exp(fc.sqrt(x.sum(axis=1)))[:, None]).sum(axis=0)


def chain(x: fc.Element) -> fc.Element:
    return fc.nn.sigmoid(2 * x + 1) * fc.tanh(x)


def of_bytes() -> fc.Element:
    x = fc.constant(np.zeros((9, 24), "i1"))
    return fc.matmul(x, fc.constant(np.zeros((24, 9), "u1")), dtype="int32")


def joined(x: fc.Element) -> fc.Element:
    return fc.concat([x * 2, x[:, 1:]], axis=1) + 1


def looked_up() -> list[fc.Element]:
    return [fc.take(fc.constant(np.zeros((50, 21), "f4")), rows(3, "i8"), axis=0) * 2]


def decoded() -> list[fc.Element]:
    x = fc.dequantize(fc.source(np.zeros((8, 2 * 144), "u1"), name="x"), "Q4_K")
    return [x @ fc.dequantize(fc.constant(np.zeros((19, 16 * 34), "u1")), "Q8_0").T]


def decoded_in_terms() -> list[fc.Element]:
    return [rows(256) @ fc.dequantize(fc.constant(np.zeros((64, 8 * 18), "u1")), "Q4_0").T]


def decoded_once() -> list[fc.Element]:
    w = fc.dequantize(fc.constant(np.zeros((19, 2 * 20), "u1")), "Q4_1")
    return [fc.constant(np.zeros((1, 64), "f4")) @ w.T]


def slope(x: fc.Element) -> fc.Element:
    padded = fc.pad(x, ((0, 0), (1, 1)), mode="reflect")
    return padded[:, 2:] - padded[:, :-2]


def columns(x: fc.Element) -> list[fc.Element]:
    return [x.mean(axis=0), x * 3]


def choice(x: fc.Element) -> list[fc.Element]:
    return [fc.where(x > 0, x, fc.abs(x))]


def turned() -> fc.Element:
    x = fc.source(np.zeros((8, 40, 9, 64), "f4"), name="x")
    return fc.permute_dims(x, (0, 2, 3, 1)) + 1


def attention() -> list[fc.Element]:
    x = fc.source(np.zeros((8, 1, 70, 16), "f4"), name="x")
    return [fc.nn.attention(x, x, x[..., :4], causal=True)]


def half_attention() -> list[fc.Element]:
    x = fc.source(np.zeros((8, 70, 16), "f2"), name="x")
    return [fc.nn.attention(x, x, x)]


def long_attention() -> list[fc.Element]:
    x = fc.source(np.zeros((8, 130, 16), "f2"), name="x")
    return [fc.nn.attention(x, x, x, causal=True)]


def attention_back() -> list[fc.Element]:
    x = fc.source(np.zeros((8, 70, 16), "f2"), name="x")
    terms = [fc.source(np.zeros((8, 70, 1), "f4"), name=name) for name in ("less", "shift")]
    return [attention_part("keys", x, x, x, x, *terms, causal=True, window=None, scale=0.25)]


def exact_attention() -> list[fc.Element]:
    x = fc.source(np.zeros((8, 2, 130, 32), "f4"), name="x")
    return [fc.nn.attention(x, x, x, causal=True)]


def half_convolution() -> list[fc.Element]:
    x = fc.source(np.zeros((8, 16, 6, 24), "f2"), name="x")
    return [fc.nn.conv2d(x, fc.constant(np.zeros((16, 16, 3, 3), "f2")), padding=1)]


GRAPHS = {
    "map": (lambda: [chain(numbers())], CPU),
    "map_on_a_gpu": (lambda: [chain(numbers())], GPU),
    "resident_row": (lambda: [rows(96) * fc.constant(np.arange(96, dtype="f4"))], CPU),
    "softmax": (lambda: [softmax(rows(40))], CPU),
    "softmax_on_a_gpu": (lambda: [softmax(rows(1024))], GPU),
    "long_row_on_a_gpu": (lambda: [rows(2500).sum(axis=1)], GPU),
    "long_row_half_in_local_memory": (lambda: [below_the_largest(rows(20000))], NVIDIA),
    "fold_of_numbers": (lambda: [numbers().sum()], CPU),
    "fold_of_columns": (lambda: columns(rows(20)), CPU),
    "fold_beside_row_values": (lambda: [beside_itself(rows(20))], CPU),
    "variance_on_a_gpu": (lambda: [rows(20).var(axis=0)], GPU),
    "argmax": (lambda: [rows(20, "i4").argmax(axis=1)], CPU),
    "short_rows": (lambda: [normalised(rows(3))], CPU),
    "half": (lambda: [rows(7, "f2") * 1.5], CPU),
    "choice": (lambda: choice(numbers()), CPU),
    "middle_axis": (lambda: [fc.source(np.zeros((8, 3, 5, 2), "f4")).sum(axis=(1, 3))], CPU),
    "attention": (attention, CPU),
    "attention_on_a_gpu": (attention, GPU),
    "attention_by_tensor_cores": (half_attention, NVIDIA),
    "attention_back_by_tensor_cores": (attention_back, NVIDIA),
    "attention_by_warp_groups": (long_attention, HOPPER),
    "attention_by_copies": (exact_attention, NVIDIA),
    "matmul_by_warp_groups": (lambda: [rows(64, "f2") @ fc.constant(np.zeros((64, 128), "f2"))], HOPPER),
    "convolution_by_warp_groups": (half_convolution, HOPPER),
    "decoded_matmul_in_terms": (decoded_in_terms, NVIDIA),
    "matmul_in_terms_by_warp_groups": (lambda: [rows(64) @ fc.constant(np.zeros((64, 128), "f4"))], HOPPER),
    "matmul_by_tensor_cores": (lambda: [rows(200, "f2") @ fc.constant(np.zeros((200, 50), "f2"))], NVIDIA),
    "matmul_by_copies": (lambda: [rows(40) @ fc.constant(np.zeros((40, 256), "f4"))], NVIDIA),
    "bytes_by_warp_groups": (
        lambda: [fc.matmul(rows(64, "i1"), fc.constant(np.zeros((64, 128), "u1")), dtype="int32")],
        HOPPER,
    ),
    "bytes_by_dp4a": (lambda: [of_bytes()], replace(GPU, shuffles=True)),
    "transpose_on_a_gpu": (lambda: [turned()], GPU),
    "layer": (lambda: [fc.maximum(rows(20) * 2, 0) @ fc.constant(np.zeros((20, 19), "f4"))], CPU),
    "padded": (lambda: [fc.pad(fc.source(np.zeros((8, 4, 21), "f4")) * 2, 1) + 1], CPU),
    "sorted_rows_on_a_gpu": (lambda: [fc.sort(rows(5) * 2) + 1], GPU),
    "stencil_on_a_gpu": (lambda: [slope(rows(20))], GPU),
    "scan": (lambda: [fc.cumulative_sum(numbers() * 2) + 1], CPU),
    "scan_by_looking_back": (lambda: [fc.cumulative_max(rows(3), axis=0)], NVIDIA),
    "scan_of_numbers_by_looking_back": (lambda: [fc.cumulative_max(numbers())], HOPPER),
    "scan_of_wide_items_on_a_gpu": (lambda: [fc.cumulative_sum(rows(1009), axis=0)], GPU),
    "scan_in_items_on_a_gpu": (lambda: [fc.cumulative_sum(rows(8), axis=1)], GPU),
    "recurrence": (lambda: [fc.linear_recurrence(rows(20), 1, axis=1)], CPU),
    "joined_on_a_gpu": (lambda: [joined(rows(3))], GPU),
    "blocks": (decoded, CPU),
    "blocks_on_a_gpu": (decoded, GPU),
    "blocks_for_one_row": (decoded_once, CPU),
    "lookup": (looked_up, CPU),
    "lookup_on_a_gpu": (looked_up, GPU),
    "matmul": (lambda: [rows(20) @ fc.constant(np.zeros((20, 19), "f4"))], CPU),
}

PRECISIONS: dict[str, Precision] = {"decoded_matmul_in_terms": "tf32x3", "matmul_in_terms_by_warp_groups": "tf32x3"}
"""Precision of the graphs that are not computed exactly, by name."""


def graph_of(elements: list[fc.Element], capabilities: DeviceCapabilities) -> Graph:
    """The graph that is planned for such a device."""
    graph = multiply_halves(build_graph([element >> fc.discard() for element in elements]), capabilities)
    return multiply_bytes(graph, capabilities, 1 << 40)


def text_of(name: str) -> str:
    make, capabilities = GRAPHS[name]
    graph = graph_of(make(), capabilities)
    plan = make_plan(
        graph, Config(1 << 30, precision=PRECISIONS.get(name, "exact")), Strategy(), on_paper(capabilities)
    )
    return "\n".join(kernel.source for kernel in plan.kernels)


@pytest.mark.parametrize("name", GRAPHS)
def test_kernel_text(name: str) -> None:
    path, text = FOLDER / f"{name}.cl", text_of(name)
    if os.environ.get("FLOWCOMPUTE_GOLDEN") == "write":
        path.write_text(text)
    assert path.read_text() == text, "see the top of this file"


def test_no_text_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.cl")} == set(GRAPHS)
