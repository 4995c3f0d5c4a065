"""Peer of the stream workloads: dask.array with its threaded scheduler, 16 MiB chunks, into the same kind of file."""

from __future__ import annotations

import os
from collections.abc import Callable

import dask
import dask.array as da
import numpy as np

from benchmarks.measuring.chunks import new_output
from benchmarks.measuring.workloads import CHUNK_BYTES, Job
from benchmarks.streams.stream_workloads import COLUMNS

ROWS = 4 * CHUNK_BYTES // (COLUMNS * 4)


def prepare(job: Job) -> Callable[[Job], object]:
    """Stores into a mapped .npy file: no slower than a stack of .npy files, and the very same bytes as the others."""
    dask.config.set(scheduler="threads", num_workers=len(os.sched_getaffinity(0)))

    def standardise(job: Job) -> None:
        x = da.from_array(np.load(job.inputs[0], mmap_mode="r"), chunks=(ROWS, COLUMNS))
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        da.store(z.astype(np.float32), new_output(job), lock=False)

    return standardise
