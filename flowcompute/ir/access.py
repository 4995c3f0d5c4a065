"""Memory layout of values: views and windows are strided accesses to the memory of another value."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from flowcompute.elements import Kind
from flowcompute.elements.axes import padded
from flowcompute.elements.nn import windows_of
from flowcompute.elements.search import ORDERING
from flowcompute.elements.training import ALL_RECORDS, Given
from flowcompute.errors import RunError
from flowcompute.graph import Graph, Node, postorder
from flowcompute.imports import dataclass

LONG, MOST_WALKS = 8, 16
"""Numbers of an axis that NumPy's innermost loop is worth, and times that a copy goes through an array for short axes.

A loop costs NumPy 10 ns, a number .4 ns. A number of another walk takes .5 to 1.3 ns, since it loads its own line of
the cache.
"""


@dataclass(frozen=True)
class Storage:
    """Location of a value in memory: item (i, j, ...) of record r is at `offset + r * record + i * strides[0] + ...`.

    Attributes:
        base: id of the value that owns the memory. A window owns its memory, which holds the records in which the
            windows of a batch overlap, in order.
        offset: in numbers.
        record: numbers from one record to the next; 0 for a resident value.
        strides: numbers from one index to the next, by item axis.
    """

    base: int
    offset: int
    record: int
    strides: tuple[int, ...]


def c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in numbers, of a C-contiguous array."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def storage(graph: Graph, value: int, entered: Collection[int] = ()) -> Storage:
    """Return the location of a value in memory.

    Args:
        graph: the graph.
        value: id of the value.
        entered: values that come unchanged from another clock. Views and windows among them are copies.
    """
    nodes = graph.nodes
    known: dict[int, Storage] = graph.memo.setdefault(("storage", frozenset(entered)), {})
    if value in known:
        return known[value]

    def seen_through(value: int) -> tuple[int, ...]:
        return nodes[value].inputs[:1] if is_seen_through(graph, value) and value not in entered else ()

    for i in postorder((value,), seen_through, known):
        inner = [(known[base], nodes[base].spec.shape) for base in seen_through(i)]
        seen = _seen(nodes[i], *inner[0]) if inner else None
        known[i] = _own_storage(nodes[i], entered) if seen is None else seen
    return known[value]


def _own_storage(node: Node, entered: Collection[int]) -> Storage:
    """Return the location of a value that has memory of its own."""
    shape = node.spec.shape
    if node.kind is Kind.WINDOW and node.spec.is_stream and node.id not in entered:
        numbers = math.prod(shape[1:])
        return Storage(node.id, 0, node.attrs["step"] * numbers, (numbers, *c_strides(shape[1:])))
    return Storage(node.id, 0, node.spec.item_numbers if node.spec.is_stream else 0, c_strides(shape))


_STRIDED = ("permute_dims", "broadcast_to", "index", "windows", "reshape")
"""Views that may be strided accesses to their operand."""


def views_of(graph: Graph, value: int) -> tuple[int, tuple[int, ...]]:
    """Return the value that a value is a view of, and the views in between that may be strided, the last one first."""
    views = []
    while (op := graph.nodes[value].op) is not None and op.kind is Kind.VIEW and op.name in _STRIDED:
        views.append(value)
        value = graph.nodes[value].inputs[0]
    return value, tuple(views)


def below_views(graph: Graph, value: int) -> int:
    """Return the value that a value is a view of, of whatever kind the views are; of several operands the first."""
    nodes = graph.nodes
    known: dict[int, int] = graph.memo.setdefault("below views", {})

    def viewed(value: int) -> tuple[int, ...]:
        return nodes[value].inputs[:1] if nodes[value].kind is Kind.VIEW else ()

    for i in postorder((value,), viewed, known):
        known[i] = next((known[base] for base in viewed(i)), i)
    return known[value]


def seen_as(graph: Graph, root: int, views: Sequence[int]) -> Storage | None:
    """Return the location that a value would have as a view of `root` if `root` had memory of its own.

    The result is None if the views cannot be expressed as strides.
    """
    spec = graph.nodes[root].spec
    lies: Storage | None = Storage(root, 0, spec.item_numbers if spec.is_stream else 0, c_strides(spec.shape))
    for view in reversed(views):
        node = graph.nodes[view]
        lies = None if lies is None else _seen(node, lies, graph.nodes[node.inputs[0]].spec.shape)
    return lies


def is_seen_through(graph: Graph, value: int) -> bool:
    """Check whether kernels read through a view, where it has strides. The host copies those of other whole values."""
    node = graph.nodes[value]
    if node.kind is not Kind.VIEW:
        return False
    if node.spec.is_stream or node.attrs.get("is_seen"):
        return True
    base = graph.nodes[below_views(graph, value)]
    return base.op is ALL_RECORDS or (isinstance(base.element, Given) and base.element.is_viewed)


def is_view(graph: Graph, value: int) -> bool:
    """Check whether a value has no memory of its own."""
    return storage(graph, value).base != value


def is_copied(graph: Graph, view: int) -> bool:
    """Check whether `view_array` allocates memory for a batch of this view: it is gathered, or has no strides."""
    op = graph.nodes[view].op
    assert op is not None
    return op.name != "spool" and not is_view(graph, view)


def is_strided(node: Node) -> bool:
    """Check whether a node is a view that strides describe where its one operand is contiguous."""
    return node.op is not None and node.op.name in ("permute_dims", "broadcast_to", "index", "windows", "reshape")


def is_dense(graph: Graph, value: int, entered: Collection[int] = ()) -> bool:
    """Check whether a stream's numbers are contiguous from the start of its memory; see `storage`."""
    is_run = storage(graph, value, entered).record == graph.nodes[value].spec.item_numbers
    return is_run and has_dense_items(graph, value, entered)


def has_dense_items(graph: Graph, value: int, entered: Collection[int] = ()) -> bool:
    """Check whether the numbers of an item, or of a whole value, are contiguous, the first ones from the start on."""
    spec, place = graph.nodes[value].spec, storage(graph, value, entered)
    if place.offset:
        return False
    own = c_strides(spec.shape)
    return all(a == b for a, b, size in zip(place.strides, own, spec.shape, strict=True) if size > 1)


def _seen(node: Node, inner: Storage, shape: tuple[int, ...]) -> Storage | None:
    """Return the location of a view, or None if it needs memory of its own."""
    assert node.op is not None
    name, made = node.op.name, node.spec.shape
    if 0 in made:
        return None
    if name == "permute_dims":
        return Storage(
            inner.base, inner.offset, inner.record, tuple(inner.strides[axis] for axis in node.attrs["axes"])
        )
    if name == "broadcast_to":
        new = len(made) - len(shape)
        strides = [0 if size == 1 else stride for size, stride in zip(shape, inner.strides, strict=True)]
        return Storage(inner.base, inner.offset, inner.record, (*[0] * new, *strides))
    if name == "index":
        return _indexed(node, inner)
    if name == "windows":
        return _windowed(node, inner)
    if name == "reshape":
        reshaped = _reshaped(inner.strides, shape, made)
        return None if reshaped is None else Storage(inner.base, inner.offset, inner.record, reshaped)
    return None


def _reshaped(strides: tuple[int, ...], shape: tuple[int, ...], made: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides of an array in another shape, or None if there are none."""
    # NumPy implements the rule. With items of one byte its strides are in numbers, and no memory is read.
    seen = np.lib.stride_tricks.as_strided(np.empty(0, np.uint8), shape, strides)
    try:
        return np.reshape(seen, made, copy=False).strides
    except ValueError:
        return None


def _indexed(node: Node, inner: Storage) -> Storage:
    offset, strides = inner.offset, []
    axes = iter(inner.strides)
    for key in node.attrs["index"]:
        if key is None:
            strides.append(0)
            continue
        stride = next(axes)
        if isinstance(key, int):
            offset += key * stride
        else:
            start, _, step = key
            offset += start * stride
            strides.append(step * stride)
    return Storage(inner.base, offset, inner.record, tuple(strides))


def _windowed(node: Node, inner: Storage) -> Storage:
    places, inside = list(inner.strides), []
    for axis, _, step, dilation in node.attrs["windows"]:
        inside.append(inner.strides[axis] * dilation)
        places[axis] = inner.strides[axis] * step
    return Storage(inner.base, inner.offset, inner.record, (*places, *inside))


def view_array(node: Node, arrays: Sequence[np.ndarray], *, stream: bool, first: int = 0) -> np.ndarray:
    """Return a view of arrays, which often is not contiguous.

    The arrays are batches of shape `(records, *item)` if `stream`, otherwise whole values.

    Args:
        node: the view.
        arrays: its operands.
        stream: whether it is a batch.
        first: the number of the batch's first record, for errors.

    Raises:
        RunError: if an index is out of range.
    """
    assert node.op is not None
    name, attrs, array = node.op.name, node.attrs, arrays[0]
    lead = 1 if stream else 0
    if name == "spool":
        return array
    if name == "index":
        keys = [key if key is None or isinstance(key, int) else _slice(*key) for key in attrs["index"]]
        return array[(*[slice(None)] * lead, *keys)]
    if name == "permute_dims":
        return array.transpose(*range(lead), *(axis + lead for axis in attrs["axes"]))
    if name == "reshape":
        return _in_shape(array, (*array.shape[:lead], *node.spec.shape))
    if name == "broadcast_to":
        missing = len(node.spec.shape) + lead - array.ndim
        spread = array.reshape((*array.shape[:lead], *(1,) * missing, *array.shape[lead:]))
        return np.broadcast_to(spread, (*array.shape[:lead], *node.spec.shape))
    if name == "windows":
        return windows_of(array, attrs["windows"], lead)
    if name == "pad":
        return padded(array, (*[(0, 0)] * lead, *attrs["widths"]), attrs["mode"], attrs["fill"])
    if name == "take":
        return _taken(node, array, arrays[1], attrs["axis"] + lead)
    if name == "indices":
        return _checked_indices(node, array, first)
    if name == "lookup":
        return np.moveaxis(np.take(array, arrays[1], axis=attrs["axis"]), attrs["axis"], 0)
    if node.op in ORDERING:
        return _in_order(node, arrays, lead)
    rank = max(one.ndim for one in arrays)
    records = next(one.shape[:1] for one in arrays if one.ndim == rank)
    # What is resident beside a stream is the same for each record.
    every = [one if one.ndim == rank else np.broadcast_to(one, (*records, *one.shape)) for one in arrays]
    joined: np.ndarray = (np.stack if name == "stack" else np.concatenate)(every, axis=attrs["axis"] + lead)
    return joined


def _in_shape(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array in another shape: a view, or a copy where strides have none."""
    try:
        return np.reshape(array, shape, copy=False)
    except ValueError:
        return contiguous(array).reshape(shape)


def contiguous(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array in C order.

    NumPy's innermost loop is over the last axis, so windows of 2 x 2 cost it a loop for two numbers. Here short last
    axes are walked outside, and a longer one inside.
    """
    made = np.empty(array.shape, array.dtype)
    outside = short_axes(array)
    for index in np.ndindex(*array.shape[array.ndim - outside :]):
        made[(..., *index)] = array[(..., *index)]
    return made


def short_axes(array: np.ndarray) -> int:
    """Return how many last axes are walked outside of a copy."""
    outside, walks = 0, 1
    for axis in reversed(range(1, array.ndim)):
        size = array.shape[axis]
        whole = array.strides[axis - 1] == size * array.strides[axis]
        walks *= size
        if size >= LONG or whole or walks > MOST_WALKS:
            break
        outside += 1
    return outside


def _taken(node: Node, array: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """Return the items at indices along an axis. Computed indices are known only at run time.

    Raises:
        RunError: if one is out of range.
    """
    size = array.shape[axis]
    outside = (indices < -size) | (indices >= size)
    if outside.any():
        raise _out_of_range(node, size, str(indices[outside][0]))
    return np.take(array, indices.astype(np.int64), axis=axis)


def _checked_indices(node: Node, indices: np.ndarray, first: int) -> np.ndarray:
    """Return the indices of a batch, counted from the start of the axis.

    Raises:
        RunError: naming the first record with one that is out of range.
    """
    size = node.attrs["size"]
    # As Python's integers, so that none wraps around.
    lowest, highest = (int(indices.min()), int(indices.max())) if indices.size else (0, 0)
    if indices.size and not -size <= lowest <= highest < size:
        outside = (indices < -size) | (indices >= size)
        place = np.unravel_index(int(np.argmax(outside)), outside.shape)
        record = first + int(place[0])
        raise RunError(
            "cannot look up an index that is out of range",
            element=node.name,
            site=node.element.site,
            records=(record, record + 1),
            expected=f"{-size} to {size - 1}" if size else "no records, as the axis is empty",
            got=f"{indices[place]} at record {record}",
            hint="clip or filter the stream of indices",
        )
    made = indices.astype(node.spec.dtype)
    if lowest < 0:
        np.add(made, size, out=made, where=made < 0)
    return made


def _in_order(node: Node, arrays: Sequence[np.ndarray], lead: int) -> np.ndarray:
    """Return what sorting, a search or a lookup makes of arrays.

    Raises:
        RunError: if a computed index is out of range.
    """
    assert node.op is not None
    attrs = {key: value + lead if key == "axis" else value for key, value in node.attrs.items()}
    try:
        return np.asarray(node.op.numpy(*arrays, **attrs))
    except IndexError as error:
        index, _, size = str(error).partition(" of ")
        raise _out_of_range(node, int(size), index) from None


def _out_of_range(node: Node, size: int, index: str) -> RunError:
    return RunError(
        "cannot take an index that is out of range",
        element=node.name,
        site=node.element.site,
        expected=f"{-size} to {size - 1}",
        got=index,
    )


def _slice(start: int, count: int, step: int) -> slice:
    stop = start + count * step
    # A negative stop would count from the end.
    return slice(start, None if stop < 0 else stop, step) if count else slice(0, 0)
