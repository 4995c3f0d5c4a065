"""Policies for records at which a user's code fails."""

from flowcompute.elements.policies.dead_letters import DeadLetters
from flowcompute.elements.policies.policy import ErrorPolicy, OnError, parse_policy
from flowcompute.elements.policies.skip_counter import SkipCounter, error_text

__all__ = ["DeadLetters", "ErrorPolicy", "OnError", "SkipCounter", "error_text", "parse_policy"]
