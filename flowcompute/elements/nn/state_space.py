"""The selective state-space scan of Mamba (A. Gu and T. Dao, 2023), in memory that grows with its results alone."""

from __future__ import annotations

import numpy as np

from flowcompute.elements.alignment import common_dtype, common_length
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import add, multiply
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, Spec, Stream, format_shape, is_float

STATES = 64
"""Most states of a channel: each is in a register."""


def selective_scan_of(u: np.ndarray, delta: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Compute `selective_scan` without `D` on arrays of one dtype, whose last two axes are those of an item."""
    state = np.zeros((*u.shape[:-2], *a.shape), u.dtype)
    made = np.empty(u.shape, u.dtype)
    for t in range(u.shape[-2]):
        step = delta[..., t, :, None]
        state = np.exp(step * a) * state + (step * u[..., t, :, None]) * b[..., t, None, :]
        made[..., t, :] = (state * c[..., t, None, :]).sum(axis=-1)
    return made


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("scans state their dtypes themselves")


def _rebuild_selective_scan(kept: KeptOp) -> Compute:
    kept.require(kept.attrs.whole("axis") == 0, "axis 0")
    return selective_scan(*kept.operands(5))


SELECTIVE_SCAN = Op(
    "selective_scan", 5, Kind.SCAN, selective_scan_of, _declared, cost=1000, rebuild=_rebuild_selective_scan
)


@public
def selective_scan(u: Operand, delta: Operand, A: Operand, B: Operand, C: Operand, D: Operand | None = None) -> Compute:  # noqa: N803
    """Run a state-space model whose step depends on its input, along time inside each item.

    With a state h of (channels, N), begun with 0: `h[t] = exp(delta[t] * A) * h[t-1] + delta[t] * u[t] * B[t]`
    and `y[t] = sum(C[t] * h[t], axis=-1) + D * u[t]`. The kernel keeps the states in registers. Steps and sums over N
    are in order, fused multiply-adds in the dtype of the numbers (half formats in float32).

    With negative A, as Mamba has it, an error of a step fades with its state. Answers are then within about N + T times
    half a unit in the last place of the largest term.

    Args:
        u: what comes in, items of (time, channels); a stream of such items is a batch of sequences.
        delta: sizes of steps, shaped as `u` (after softplus and bias, if any; they are fused).
        A: (channels, N), resident; N is 64 at most.
        B: (time, N) for each item.
        C: (time, N) for each item.
        D: (channels,), or None.

    Raises:
        SpecError: if shapes or dtypes do not fit.
    """
    name = SELECTIVE_SCAN.name
    every = [as_element(one, name) for one in (u, delta, A, B, C)]
    dtype = common_dtype(name, every)
    if not is_float(dtype):
        raise SpecError(
            "cannot run on this dtype", element=name, site=user_site(), expected="a floating dtype", got=dtype.name
        )
    shapes = [element.spec.shape for element in every]
    shape, states = shapes[0], shapes[2][-1] if shapes[2] else 0
    wanted = [shape, shape, (*shape[1:], states), *[(*shape[:1], states)] * 2]
    if len(shape) != 2 or shapes != wanted or not 0 < states <= STATES or every[2].spec.is_stream:
        raise SpecError(
            "cannot scan operands of these shapes",
            element=name,
            site=user_site(),
            expected=f"items (time, channels) twice, (channels, N) with N up to {STATES}, (time, N) twice",
            got=", ".join(format_shape(one) for one in shapes),
        )
    wide = FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype
    streams = [element for element in every if element.spec.is_stream]
    stream = Stream(common_length(name, streams)) if streams else None
    if stream is not None and not all(every[place].spec.is_stream for place in (0, 1, 3, 4)):
        raise SpecError(
            "cannot mix streams and resident values among u, delta, B and C",
            element=name,
            site=user_site(),
            expected="streams only, or resident values only",
            got=", ".join(str(element.spec) for element in every),
        )
    inputs = tuple(cast(element, wide) for element in every)
    made = cast(Compute(SELECTIVE_SCAN, inputs, Spec(wide, shape, stream), {"axis": 0}), dtype)
    return made if D is None else add(made, multiply(D, u))  # type: ignore[return-value]
