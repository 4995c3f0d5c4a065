"""Launches that follow each other: as one, phase after phase, or with arguments that stay set."""

from flowcompute.gpu.run.chains.bound_launches import BoundLaunches
from flowcompute.gpu.run.chains.chain_of_runs import ChainOfRuns
from flowcompute.gpu.run.chains.launch_chain import ChainMaker, LaunchChain
from flowcompute.gpu.run.chains.launch_sequence import LaunchSequence

__all__ = ["BoundLaunches", "ChainMaker", "ChainOfRuns", "LaunchChain", "LaunchSequence"]
