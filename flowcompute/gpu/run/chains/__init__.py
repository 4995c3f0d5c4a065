"""Chains: many launches of a step in one, phase after phase."""

from flowcompute.gpu.run.chains.chain_of_runs import ChainOfRuns
from flowcompute.gpu.run.chains.launch_chain import ChainMaker, LaunchChain
from flowcompute.gpu.run.chains.launch_sequence import LaunchSequence

__all__ = ["ChainMaker", "ChainOfRuns", "LaunchChain", "LaunchSequence"]
