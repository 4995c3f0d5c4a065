"""Measuring peers in turns, in processes of their own."""
