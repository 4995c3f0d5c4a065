"""Renderer of users' functions to OpenCL C."""

from flowcompute.gpu.render.functions.user_functions import call_lines

__all__ = ["call_lines"]
