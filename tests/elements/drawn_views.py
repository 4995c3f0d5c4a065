"""Random views of item axes, as functions that take elements and NumPy arrays alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowcompute as fc


@dataclass(frozen=True)
class View:
    """A view of a stream.

    Attributes:
        text: how it is written.
        of: the view, of an element or of a whole array `(length, *item)`.
        shape: the item shape it gives.
    """

    text: str
    of: Callable[[Any], Any]
    shape: tuple[int, ...]


@st.composite
def item_shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Item shapes of up to three axes."""
    return draw(st.lists(st.integers(1, 5), max_size=3).map(tuple))


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    """A view of items of a shape."""
    made = draw(_KINDS[draw(st.sampled_from(sorted(_KINDS)))](shape))
    assert made.of(np.empty((2, *shape))).shape == (2, *made.shape)
    return made


@st.composite
def _index(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    keys: list[Any] = [slice(None)]
    bounds = st.none() | st.integers(-6, 6)
    for size in shape:
        if draw(st.integers(0, 4)) == 0:
            keys.append(None)
        part = slice(draw(bounds), draw(bounds), draw(st.sampled_from([None, 1, 2, -1, -2])))
        keys.append(draw(st.integers(-size, size - 1)) if size and draw(st.booleans()) else part)
    if draw(st.integers(0, 3)) == 0:
        keys.append(None)
    return _made(f"[{keys}]", lambda x: x[tuple(keys)], shape)


@st.composite
def _permuted(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    axes = (0, *draw(st.permutations(range(1, len(shape) + 1))))
    return _made(f"permute_dims({axes})", lambda x: _of(x).permute_dims(x, axes), shape)


@st.composite
def _reshaped(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    left, made = int(np.prod(shape)), []
    for _ in range(draw(st.integers(0, 2))):
        size = draw(st.sampled_from([one for one in range(1, left + 1) if left % one == 0] or [0]))
        made.append(size)
        left //= max(size, 1)
    whole = (2, *made, left)
    return _made(f"reshape(-1, {whole[1:]})", lambda x: _of(x).reshape(x, (x.shape[0], *whole[1:])), shape)


@st.composite
def _turned(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    axes = tuple(draw(st.sets(st.integers(1, len(shape)), max_size=2))) if shape else ()
    return _made(f"flip({axes})", lambda x: _of(x).flip(x, axes), shape)


@st.composite
def _spread(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    wide = tuple(draw(st.integers(1, 3)) if size == 1 else size for size in shape)
    return _made(f"broadcast_to({wide})", lambda x: _of(x).broadcast_to(x, (x.shape[0], *wide)), shape)


@st.composite
def _windows(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    axes = tuple(draw(st.sets(st.sampled_from(range(1, len(shape) + 1)), max_size=2))) if all(shape) and shape else ()
    size = tuple(draw(st.integers(1, shape[axis - 1])) for axis in axes)
    step = tuple(draw(st.integers(1, 3)) for _ in axes)
    spread = tuple(
        draw(st.integers(1, max(1, (shape[axis - 1] - 1) // max(1, one - 1))))
        for axis, one in zip(axes, size, strict=True)
    )

    def of(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return fc.nn.unfold(x, size, axes, step, spread)
        reach = tuple((one - 1) * wide + 1 for one, wide in zip(size, spread, strict=True))
        seen = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
        keys = [slice(None)] * seen.ndim
        for at, axis in enumerate(axes):
            keys[axis] = slice(None, None, step[at])
            keys[x.ndim + at] = slice(None, None, spread[at])
        return seen[tuple(keys)]

    return _made(f"unfold({size}, {axes}, {step}, {spread})", of, shape)


_KINDS: dict[str, Callable[[tuple[int, ...]], st.SearchStrategy[View]]] = {
    "index": _index,
    "permute": _permuted,
    "reshape": _reshaped,
    "flip": _turned,
    "broadcast": _spread,
    "windows": _windows,
}


def _of(x: Any) -> Any:
    return np if isinstance(x, np.ndarray) else fc


def _made(text: str, of: Callable[[Any], Any], shape: tuple[int, ...]) -> View:
    return View(text, of, of(np.empty((2, *shape))).shape[1:])
