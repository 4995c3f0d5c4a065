"""The workloads W1 to W6 as each library computes them."""
