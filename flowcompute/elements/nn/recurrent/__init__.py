"""Recurrent layers along time inside of items."""

from flowcompute.elements.nn.recurrent.recurrent_layers import gru, lstm, rnn

__all__ = ["gru", "lstm", "rnn"]
