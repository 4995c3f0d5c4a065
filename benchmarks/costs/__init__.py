"""Costs of flowcompute around the numbers."""
