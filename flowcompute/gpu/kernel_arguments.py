"""Arguments of kernels: those of the plan, and the numbers of each launch."""

from __future__ import annotations

import numpy as np

from flowcompute.ir import Kernel, register_dtype

INTEGER_ARGUMENTS = ("n", "chunk", "blocks", "first", "phase")
"""Last parameters of every kernel: numbers or rows, how many a work-item takes, blocks of a fold. Then come the index
of the batch's first record, and its offset in its block."""


def argument_types(kernel: Kernel) -> list[np.dtype | None]:
    """Return the dtype of each scalar parameter, None for pointers."""
    own = [
        register_dtype(argument.dtype) if argument.kind in ("scalar", "integer") else None
        for argument in kernel.arguments
    ]
    return [*own, *[np.dtype(np.int64)] * len(INTEGER_ARGUMENTS)]
