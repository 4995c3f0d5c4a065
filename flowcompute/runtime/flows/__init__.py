"""Persistent flows: a graph that is opened once and fed by hand."""

from flowcompute.runtime.flows.flows import AsyncFlow, Flow, FlowOpener

__all__ = ["AsyncFlow", "Flow", "FlowOpener"]
