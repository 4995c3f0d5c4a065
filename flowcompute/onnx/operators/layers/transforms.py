"""Fourier transforms, and determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import linalg
from flowcompute.elements.fft import fft, ifft, irfft, rfft
from flowcompute.onnx.logical_value import APART, Value
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal


def _parts(x: Any) -> tuple[Any, Any] | Any:
    """Return the pair of parts that lie along the last axis, or the real part alone."""
    if x.shape[-1] == 1:
        return x[..., 0]
    return x[..., 0], x[..., 1]


def _dft(call: NodeCall) -> Value:
    value, given = call[0], call.get(1)
    length = None if given is None else given.ints("dft_length")[0]
    third = call.get(2)
    axis = call.attribute("axis") if call.opset < 20 else -2 if third is None else third.ints("axis")[0]
    at = value.item_axis(value.normal(axis), "transform along")
    if value.size(value.ndim - 1) not in (1, 2) or value.normal(axis) == value.ndim - 1:
        raise Refusal("invalid", "a last axis that holds no numbers of one or two parts", "correct the model")
    x = _parts(value.element)
    is_real = not isinstance(x, tuple)
    inverse, onesided = call.attribute("inverse"), call.attribute("onesided")
    if inverse and onesided:
        return value.like(fc_axes.expand_dims(irfft(x if not is_real else (x, fc.multiply(x, 0)), length, at), -1))
    if onesided and not is_real:
        raise Refusal("attribute", "onesided=1 of complex numbers", "use onesided=0")
    made = ifft(x, length, at) if inverse else rfft(x, length, at) if onesided else fft(x, length, at)
    return value.like(_cast(fc_axes.stack(list(made), axis=-1), value.dtype))


def _cast(x: Any, dtype: np.dtype) -> Any:
    return x if x.dtype == dtype else fc.astype(x, dtype)


def _stft(call: NodeCall) -> Value:
    signal, step, window, given = call[0], call[1].ints("frame_step")[0], call.get(2), call.get(3)
    if signal.ndim != 3 or signal.axis not in (None, 0):
        raise Refusal("batch axis", "a signal whose records do not stand first", APART)
    if given is None and window is None:
        raise Refusal("invalid", "neither a window nor a length of frames", "correct the model")
    length = window.size(0) if given is None and window is not None else given.ints("frame_length")[0]  # type: ignore[union-attr]
    total = signal.size(1)
    if step < 1 or not 1 <= length <= total:
        raise Refusal("invalid", f"frames of {length} of {total} numbers, each {step}", "correct the model")
    places = np.arange(0, total - length + 1, step)[:, None] + np.arange(length)
    x = _parts(signal.element)
    parts = [fc_axes.take(one, places, axis=1) for one in (x if isinstance(x, tuple) else (x,))]
    if window is not None:
        parts = [fc.multiply(one, window.resident("a window")) for one in parts]
    if call.attribute("onesided") and len(parts) > 1:
        raise Refusal("attribute", "onesided=1 of complex numbers", "use onesided=0")
    made = rfft(parts[0]) if call.attribute("onesided") else fft(parts[0] if len(parts) == 1 else tuple(parts))
    return signal.like(_cast(fc_axes.stack(list(made), axis=-1), signal.dtype))


def _det(call: NodeCall) -> Value:
    value = call[0]
    if value.axis is not None and value.axis >= value.ndim - 2:
        raise Refusal("batch axis", "a determinant along the records", APART)
    return value.like(linalg.det(value.element))


OPERATORS: tuple[Operator, ...] = (
    Operator("DFT", _dft, 17, 20, attributes={"axis": 1, "inverse": 0, "onesided": 0}),
    Operator("DFT", _dft, 20, attributes={"inverse": 0, "onesided": 0}),
    Operator("STFT", _stft, 17, attributes={"onesided": 1}),
    Operator("Det", _det, 11),
)
