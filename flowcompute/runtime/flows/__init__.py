"""Persistent flows: a graph that is opened once and fed by hand."""

from flowcompute.runtime.flows.flows import FlowOpener

__all__ = ["FlowOpener"]
