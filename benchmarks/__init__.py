"""How fast flowcompute is beside the machine's limits and other libraries: `python -m benchmarks --help`."""
