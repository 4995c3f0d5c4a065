"""The geometry of windows: pads, strides and counts by the rules of ONNX."""

from __future__ import annotations

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.onnx.operators.record import NodeCall
from flowcompute.onnx.problems import Refusal

AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")

WINDOW_ATTRIBUTES = {"auto_pad": "NOTSET", "dilations": None, "kernel_shape": None, "pads": None, "strides": None}


@dataclass(frozen=True)
class WindowAxis:
    """Windows along an axis.

    Attributes:
        size: numbers along it.
        kernel: numbers in a window.
        stride, dilation: from one window to the next, and from one number of a window to its next.
        before, after: width of the pads.
        count: windows.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    count: int

    @property
    def extra(self) -> int:
        """Numbers by which the last window reaches beyond the pads; negative where some are not seen."""
        reach = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return reach - self.size - self.before - self.after

    def numbers(self, *, with_pads: bool) -> np.ndarray:
        """Count the numbers in each window, those of the pads among them or not."""
        starts = np.arange(self.count) * self.stride - self.before
        low, high = (-self.before, self.size + self.after) if with_pads else (0, self.size)
        # Numbers of a window stand at start + k * dilation.
        first = np.maximum(-((starts - low) // self.dilation), 0)
        last = np.minimum(-((starts - high) // self.dilation), self.kernel)
        counts: np.ndarray = np.maximum(last - first, 0)
        return counts


def window_axes(
    call: NodeCall, sizes: tuple[int, ...], kernel: tuple[int, ...], *, ceil: bool = False
) -> list[WindowAxis]:
    """Return the windows along each axis.

    Args:
        call: of a node with `WINDOW_ATTRIBUTES`.
        sizes: of the axes.
        kernel: numbers in a window along each axis.
        ceil: whether a last window may reach beyond the pads.

    Raises:
        Refusal: if the attributes do not fit the axes.
    """
    dims = len(sizes)
    strides = call.attribute("strides") or (1,) * dims
    spreads = call.attribute("dilations") or (1,) * dims
    pads = call.attribute("pads") or (0,) * (2 * dims)
    how = call.choice("auto_pad", AUTO_PAD)
    if not len(kernel) == len(strides) == len(spreads) == dims == len(pads) // 2 or len(pads) % 2:
        raise Refusal("invalid", f"windows of {len(kernel)} axes over {dims}", "correct the model")
    if min((*kernel, *strides, *spreads), default=1) < 1 or min(pads, default=0) < 0:
        raise Refusal("attribute", "a window, a stride or a pad below its least", "correct the model")
    made = []
    for at, (size, own, stride, spread) in enumerate(zip(sizes, kernel, strides, spreads, strict=True)):
        reach = (own - 1) * spread + 1
        before, after = pads[at], pads[at + dims]
        if how == "VALID":
            before = after = 0
        if how.startswith("SAME"):
            count = -(-size // stride)
            total = max(0, (count - 1) * stride + reach - size)
            before = total // 2 if how == "SAME_UPPER" else total - total // 2
            after = total - before
        else:
            room = size + before + after - reach
            count = (-(-room // stride) if ceil else room // stride) + 1
            if ceil and (count - 1) * stride >= size + before:
                count -= 1
        if count < 1:
            raise Refusal("invalid", f"a window of {reach} over {size} numbers", "correct the model")
        made.append(WindowAxis(size, own, stride, spread, before, after, count))
    return made
