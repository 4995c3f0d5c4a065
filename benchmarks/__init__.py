"""Speed of flowcompute beside the machine's limits and other libraries: `python -m benchmarks --help`."""
