"""Runs plans: stages, channels, buffers, and the Run that people hold."""
