"""Trainings beside torch and jax; see `__main__`."""
