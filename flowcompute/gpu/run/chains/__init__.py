"""Chains: many launches of a step in one, phase after phase."""

from flowcompute.gpu.run.chains.launch_chain import ChainMaker, LaunchChain

__all__ = ["ChainMaker", "LaunchChain"]
