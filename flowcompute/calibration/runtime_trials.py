"""Trials of OpenCL runtimes, each in a process of its own, since a faulty one may end its process or never answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from flowcompute.calibration.trial_jobs import try_device
from flowcompute.errors import PlanError
from flowcompute.files import ForeignJsonError, expect, read_json
from flowcompute.gpu.device import DeviceRow
from flowcompute.strategy import TRIAL_SHAPE, RuntimeTrial, save_runtime_trial

LIMIT_S = 300.0
"""Seconds that the jobs may take on a runtime. Most of them go to its compiler."""

_LIMIT_BYTES = 1 << 16

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from flowcompute.calibration.runtime_trials import report_trial; report_trial(sys.argv[2])"
)


def try_runtimes(rows: Sequence[DeviceRow], *, limit_s: float = LIMIT_S) -> dict[str, RuntimeTrial]:
    """Try each device, keep the outcomes for `device="auto"`, and return them by `DeviceRow.spec`.

    Args:
        rows: the devices, as `describe_devices` gives them.
        limit_s: seconds that one may take.
    """
    trials = {row.spec: _try(row.spec, limit_s) for row in rows}
    for row in rows:
        save_runtime_trial(row.identity, trials[row.spec])
    return trials


def _try(spec: str, limit_s: float) -> RuntimeTrial:
    command = [sys.executable, "-c", _START, json.dumps(sys.path), spec]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and text
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return RuntimeTrial(f"no answer within {limit_s:g} s", 0.0)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return RuntimeTrial(f"its process ended with {done.returncode}: {said[-1][:200] if said else 'no word'}", 0.0)
    try:
        last = done.stdout.splitlines()[-1:] or [b""]
        return read_json(last[0], lambda data: RuntimeTrial(**expect(data, TRIAL_SHAPE)), limit_bytes=_LIMIT_BYTES)
    except (ForeignJsonError, PlanError) as error:
        return RuntimeTrial(f"its process gave no outcome: {error}", 0.0)


def report_trial(spec: str) -> None:
    """Try a device and print the outcome as a line of JSON: the body of the process that `try_runtimes` starts."""
    sys.stdout.write(json.dumps(try_device(spec).plain()) + "\n")
