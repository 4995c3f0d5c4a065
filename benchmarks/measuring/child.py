"""One peer in a process of its own: prepares, warms up, then repeats when told to. `harness.py` starts it.

Commands come as lines on stdin and are answered by one line of JSON each: `run`, `cold` (the output is made durable
within the time), `result PATH` (the last small result is saved there), end of input.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measuring import peers
from benchmarks.measuring.chunks import new_output
from benchmarks.measuring.workloads import Job


def main() -> None:
    """Serve one peer and workload, both given as JSON in the first argument."""
    task = json.loads(sys.argv[1])
    # Libraries print what they like: the answers keep the real stdout for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    job, small = (Job.from_json(task[key]) for key in ("job", "small"))
    try:
        if task["begun"]:
            _begin(small)
        run = peers.load(task["peer"], job.workload)(small)
        if run is not None:
            run(small)
            run(small)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and "." not in str(error.name):
            return answer(state="missing", text=str(error))
        return answer(state="failed", text=f"{type(error).__name__}: {error}")
    if run is None:
        return answer(state="not applicable")
    answer(state="ready")
    return _serve(run, job, answer, begun=task["begun"])


def _begin(job: Job) -> None:
    """Make the output as a new file without pages, for a peer that only overwrites."""
    if job.output_shape is not None:
        new_output(job)


def _serve(run: Callable[[Job], object], job: Job, answer: Callable[..., None], *, begun: bool) -> None:
    result: object = None
    for line in sys.stdin:
        command, _, path = line.strip().partition(" ")
        if command == "result":
            if result is not None:
                np.save(path, np.asarray(result))
            answer(saved=result is not None)
            continue
        result = None
        try:
            start, processor = time.perf_counter(), time.process_time()
            if begun:
                _begin(job)
            result = run(job)
            if command == "cold" and job.output_shape is not None:
                _sync(job.output)
            seconds, processor_seconds = time.perf_counter() - start, time.process_time() - processor
        except Exception as error:
            answer(text=f"{type(error).__name__}: {error}")
            continue
        answer(seconds=seconds, processor_seconds=processor_seconds)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDWR)
    os.fsync(handle)
    os.close(handle)


if __name__ == "__main__":
    main()
