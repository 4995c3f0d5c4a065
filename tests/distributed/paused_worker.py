"""A worker that pauses itself: `python -m tests.distributed.paused_worker REQUEST AT`, in a process of its own.

It answers the request in a file, and sends itself SIGSTOP when it asks for the so many-th time whether it was replaced.
Its answer goes to standard output.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path

from flowcompute.distributed import answer
from flowcompute.distributed.kept import ShardFolder


def main(request: str, at: int) -> None:
    """Answer, with a pause that lasts until somebody sends SIGCONT."""
    check, calls = ShardFolder.check, count(1)

    def pausing(self: ShardFolder) -> None:
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGSTOP)
        check(self)

    ShardFolder.check = pausing  # type: ignore[method-assign]
    sys.stdout.buffer.write(answer(Path(request).read_bytes()))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
