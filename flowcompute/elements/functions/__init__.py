"""Functions that users write: read, typed, and kept as plain data that backends evaluate or write as kernels."""
