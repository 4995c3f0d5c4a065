"""Models with past keys, step by step: what they hold stays on the device."""

from flowcompute.onnx.sessions.session import Session, state_ports

__all__ = ["Session", "state_ports"]
