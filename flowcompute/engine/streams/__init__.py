"""Streams between clocks: where records wait until a clock can take them, and what their choices bring from files."""

from flowcompute.engine.streams.chosen_matrices import ChosenMatrices
from flowcompute.engine.streams.fallible_input import Attempt, find_attempts, seconds_of
from flowcompute.engine.streams.input_buffer import InputBuffer
from flowcompute.engine.streams.input_buffers import make_input_buffer

__all__ = ["Attempt", "ChosenMatrices", "InputBuffer", "find_attempts", "make_input_buffer", "seconds_of"]
