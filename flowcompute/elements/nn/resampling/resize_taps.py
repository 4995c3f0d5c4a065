"""The table of conventions for resizing an axis: where results stand in it, and what they are made of.

The names are those of ONNX's operator `Resize` (version 19), the widest list in use. PyTorch's `interpolate` is
"pytorch_half_pixel", or "align_corners" where it is asked for; TensorFlow's `resize` is "half_pixel".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flowcompute.imports import dataclass


@dataclass(frozen=True)
class ResizedAxis:
    """An axis of `size` numbers that becomes one of `count`.

    Attributes:
        size: numbers there are.
        count: numbers there will be.
        scale: how many for one; where a size was asked for, `count / size`.
        begin: where the first result stands in "tf_crop_and_resize", as a part of the axis from 0 to 1.
        end: where the last one stands.
    """

    size: int
    count: int
    scale: float
    begin: float = 0.0
    end: float = 1.0

    @property
    def width(self) -> float:
        """The size that the scale asks for, which may lie between two counts."""
        return self.scale * self.size


Convention = Callable[[ResizedAxis, np.ndarray], np.ndarray]
"""Returns where results stand among the numbers of an axis, of the counts 0, 1, ... of the results."""


def _half_pixel(axis: ResizedAxis, at: np.ndarray) -> np.ndarray:
    return (at + 0.5) / axis.scale - 0.5


def _half_pixel_symmetric(axis: ResizedAxis, at: np.ndarray) -> np.ndarray:
    return axis.size / 2 * (1 - axis.count / axis.width) + _half_pixel(axis, at)


def _pytorch_half_pixel(axis: ResizedAxis, at: np.ndarray) -> np.ndarray:
    return at - 0.5 if axis.width == 1 else _half_pixel(axis, at)


def _tf_half_pixel(axis: ResizedAxis, at: np.ndarray) -> np.ndarray:
    return (at + 0.5) / axis.scale


def _align_corners(axis: ResizedAxis, at: np.ndarray) -> np.ndarray:
    return at * 0.0 if axis.width == 1 else at * (axis.size - 1) / (axis.width - 1)


def _asymmetric(axis: ResizedAxis, at: np.ndarray) -> np.ndarray:
    return at / axis.scale


def _crop_and_resize(axis: ResizedAxis, at: np.ndarray) -> np.ndarray:
    length = axis.size - 1
    if axis.width == 1:
        return at * 0.0 + (axis.begin + axis.end) * length / 2
    return axis.begin * length + at * (axis.end - axis.begin) * length / (axis.width - 1)


COORDINATES: dict[str, Convention] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_half_pixel_for_nn": _tf_half_pixel,
    "tf_crop_and_resize": _crop_and_resize,
}

NEAREST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""The number that is nearest to a place between two."""


def _linear(distance: np.ndarray, _: float) -> np.ndarray:
    return np.asarray(np.maximum(1 - distance, 0))


def _cubic(distance: np.ndarray, coefficient: float) -> np.ndarray:
    near = ((coefficient + 2) * distance - (coefficient + 3)) * distance**2 + 1
    far = ((coefficient * distance - 5 * coefficient) * distance + 8 * coefficient) * distance - 4 * coefficient
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


FILTERS: dict[str, tuple[int, Callable[[np.ndarray, float], np.ndarray]]] = {
    "linear": (1, _linear),
    "cubic": (2, _cubic),
}
"""The reach of each filter on both sides, and its weights by distance.

The cubic one is that of R. Keys, "Cubic convolution interpolation for digital image processing" (1981).
"""


def taps_of(
    axis: ResizedAxis, places: np.ndarray, method: str, *, coefficient: float, antialias: bool, exclude_outside: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return which numbers each result is made of, and their weights, float64; both (count, taps).

    Args:
        axis: what is resized.
        places: where results stand.
        method: a name of `FILTERS`.
        coefficient: of the cubic filter.
        antialias: whether the filter reaches as much farther as there are fewer results.
        exclude_outside: whether what lies beyond the ends has no weight, instead of that of the end.
    """
    reach, weigh = FILTERS[method]
    squeeze = min(axis.scale, 1.0) if antialias else 1.0
    steps = int(np.ceil(reach / squeeze))
    first = np.floor(places)
    at = first[:, None] + np.arange(1 - steps, steps + 1)
    weights = weigh(np.abs(at - places[:, None]) * squeeze, coefficient)
    if antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    if exclude_outside:
        weights = np.where((at < 0) | (at >= axis.size), 0.0, weights)
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    return np.clip(at, 0, axis.size - 1).astype(np.int64), weights
