"""`python -m benchmarks.device`: kernels in device memory beside the device's own copy; see `bandwidth.py`."""

from benchmarks.device.bandwidth import main

main()
