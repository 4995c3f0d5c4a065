"""From regions to kernel IR: the table of forms, walked in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowcompute.elements.functions import TURNS, UserOp
from flowcompute.elements.generated import Generator
from flowcompute.elements.streams import KernelScan
from flowcompute.function_ir import leaves_unroll_open
from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.ir import DeviceCapabilities, FoldSpec, Kernel
from flowcompute.lower.attention import (
    ATTENTION_PARTS,
    COPIED_ATTENTION,
    CPU_ATTENTION,
    CPU_STREAM_ATTENTION,
    TENSOR_ATTENTION,
    TILED_ATTENTION,
    TILED_STREAM_ATTENTION,
    WARP_GROUP_ATTENTION,
)
from flowcompute.lower.flat import GATHER, MAP, NUMBERS, SORTED_ROWS, STENCIL, TRANSPOSE, joined_maps
from flowcompute.lower.followed import followed
from flowcompute.lower.following_rows import FollowingRows
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.joined import joined
from flowcompute.lower.kernel_knobs import CHUNK_BYTES, KernelStyle, choices
from flowcompute.lower.matmul import (
    COPIED_MATMUL,
    CPU_MATMUL,
    DEQUANTIZED_GROUP_MATMUL,
    DEQUANTIZED_MATMUL,
    PACKED_MATMUL,
    TENSOR_MATMUL,
    TERM_MATMUL,
    THIN_MATMUL,
    TILED_MATMUL,
    WARP_GROUP_MATMUL,
    WARP_GROUP_TERMS,
    WARP_GROUP_WINDOWS,
)
from flowcompute.lower.rows import COLUMNS, ROWS, SHORT_ROWS, SUBGROUP_ROWS, WORK_GROUP_ROWS
from flowcompute.lower.scan import (
    COLUMN_SCAN,
    CPU_SCAN,
    LOOK_BACK_SCAN,
    NUMBER_SCAN,
    SERIAL_SCAN,
    TILED_SERIAL_SCAN,
    WIDE_SCAN,
    is_scan,
)
from flowcompute.strategy import KernelKnobs

COMPUTED_IN_DOUBLE = ("sin", "cos", "tan")
"""Operations on float32 whose vector forms of PoCL are wrong for small numbers beside large ones."""


FORMS: tuple[Form, ...] = (
    WARP_GROUP_ATTENTION,
    TENSOR_ATTENTION,
    COPIED_ATTENTION,
    TILED_ATTENTION,
    CPU_ATTENTION,
    TILED_STREAM_ATTENTION,
    CPU_STREAM_ATTENTION,
    ATTENTION_PARTS,
    TRANSPOSE,
    GATHER,
    SORTED_ROWS,
    STENCIL,
    TILED_SERIAL_SCAN,
    SERIAL_SCAN,
    COLUMN_SCAN,
    NUMBER_SCAN,
    LOOK_BACK_SCAN,
    CPU_SCAN,
    WIDE_SCAN,
    WARP_GROUP_MATMUL,
    WARP_GROUP_TERMS,
    WARP_GROUP_WINDOWS,
    TENSOR_MATMUL,
    TERM_MATMUL,
    DEQUANTIZED_GROUP_MATMUL,
    THIN_MATMUL,
    PACKED_MATMUL,
    COPIED_MATMUL,
    TILED_MATMUL,
    DEQUANTIZED_MATMUL,
    CPU_MATMUL,
    MAP,
    NUMBERS,
    SUBGROUP_ROWS,
    WORK_GROUP_ROWS,
    SHORT_ROWS,
    ROWS,
    COLUMNS,
)
"""All forms, in the order in which they are asked."""

_BY_NAME = {form.name: form for form in FORMS}


def choose_form(task: LoweringTask) -> tuple[Form, tuple[Reason, ...]]:
    """Return the first form that accepts a region, and why those before it do not."""
    reasons: list[Reason] = []
    for form in FORMS:
        reason = form.accepts(task)
        if reason is None:
            return form, tuple(reasons)
        reasons.append(reason)
    raise AssertionError(f"cannot lower {task.region.name}: no form accepts it; {'; '.join(map(str, reasons))}")


def lower(
    graph: Graph,
    region: Region,
    style: KernelStyle,
    folds: dict[int, FoldSpec],
    name: str,
    before: Region | None = None,
) -> Kernel:
    """Lower a region to kernel IR, with the knobs that are set where its form has them; see `LoweringTask`."""
    if region.parts and not region.parts[0].stream and region.parts[0].anchor is None:
        one = replace(region.parts[0], name=region.name)
        return joined_maps(lower(graph, one, style, folds, name), graph, region.parts)
    if region.parts:
        runs: dict[int, list[Kernel]] = {}
        for part in region.parts:
            first = part.place if part.after is None else part.after
            before = None if part.after is None else region.parts[part.after]
            runs.setdefault(first, []).append(lower(graph, part, style, folds, name, before))
        kernel = joined([*runs.values()], name, region.name)
        follower = region.row_follower
        if follower is None:
            return kernel
        return _followed(kernel, graph, follower, style)
    lanes = style.capabilities.lanes_of(_widest(graph, region, folds))
    style = replace(style, capabilities=replace(style.capabilities, lanes=lanes))
    task = LoweringTask(graph, region, style, folds, name, before)
    form, _ = choose_form(task)
    kernel = form.lower(task)
    family = "fixed" if kernel.knobs == KernelKnobs() else form.family or form.name
    kernel = replace(kernel, form=form.name, division=form.geometry.__name__, family=family)
    kernel = with_items(kernel, style)
    return with_unrolled_functions(kernel, [graph.nodes[node] for node in region.nodes], style)


def _followed(kernel: Kernel, graph: Graph, follower: Region, style: KernelStyle) -> Kernel:
    """Return a kernel that makes the rows of another region of its results, and so do those of few rows."""
    few = None if kernel.few is None else _followed(kernel.few, graph, follower, style)
    rows = FollowingRows(graph, follower, style, kernel)
    return replace(followed(kernel, rows, fences=style.capabilities.device_fences), few=few)


def form_for(graph: Graph, region: Region, style: KernelStyle) -> Form:
    """Return the form of the kernel of a region without folds."""
    return choose_form(LoweringTask(graph, region, style, {}, ""))[0]


def form_of(kernel: Kernel) -> Form:
    """Return the form that lowered a kernel; KeyError where no region was lowered."""
    return _BY_NAME[kernel.form]


def candidates(kernel: Kernel, capabilities: DeviceCapabilities) -> dict[str, tuple[int, ...]]:
    """Return the knobs of a kernel on a device: those of its form, with few values each, and of its functions."""
    own = choices(form_of(kernel).knobs, capabilities)
    found = {name: values for name, values in own.items() if getattr(kernel.knobs, name) is not None}
    return found if kernel.knobs.function_unroll is None else {**found, "function_unroll": TURNS}


def _widest(graph: Graph, region: Region, folds: dict[int, FoldSpec]) -> int:
    """Bytes of the widest numbers that a region's kernel computes with."""
    nodes = [graph.nodes[i] for i in (*region.nodes, *(region.row_maker.nodes if region.row_maker else ()))]
    if any(isinstance(node.op, (UserOp, Generator)) or is_scan(node) for node in nodes):
        # Whole numbers of users' functions have 64 bits, and so have counters, and what sums go on with.
        return 8
    if any(node.op is not None and node.op.name in COMPUTED_IN_DOUBLE for node in nodes):
        return 8
    values = {graph.nodes[i].spec.dtype for node in nodes for i in (node.id, *node.inputs)}
    parts = {dtype for i in region.folds for dtype in folds[i].parts()}
    return max(dtype.itemsize for dtype in values | parts)


def with_items(kernel: Kernel, style: KernelStyle) -> Kernel:
    """Set the numbers per work-item of a CPU by the bytes of the widest operand, where nobody has set them."""
    if kernel.knobs.items_per_work_item is None or style.wanted.items_per_work_item is not None:
        return kernel
    if style.capabilities.code_shape != "cpu":
        return kernel
    widest = max([a.dtype.itemsize for a in kernel.arguments if a.kind in ("input", "output")], default=4)
    return replace(kernel, knobs=replace(kernel.knobs, items_per_work_item=CHUNK_BYTES // widest))


def with_unrolled_functions(kernel: Kernel, nodes: Sequence[Node], style: KernelStyle) -> Kernel:
    """Set the knob of loops in users' functions, where the kernel calls one that leaves it open."""
    steps = [node.element.step for node in nodes if isinstance(node.element, KernelScan)]
    called = [*steps, *(node.op for node in nodes if isinstance(node.op, UserOp))]
    if not any(leaves_unroll_open(op.function) for op in called):
        return kernel
    return replace(kernel, knobs=replace(kernel.knobs, function_unroll=style.wanted.function_unroll or 1))
