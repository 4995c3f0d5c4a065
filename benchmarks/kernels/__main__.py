"""`python -m benchmarks.kernels`: kernels on a CPU beside other libraries; see `comparison.py`."""

from benchmarks.kernels.comparison import main

main()
