"""Fixtures of jobs on a cluster whose workers are this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flowcompute.distributed.cluster import cluster_run
from tests.distributed.here import Here, X


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    for name in "ab":
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Let this process be the worker; the requests that it answers."""
    requests: list[bytes] = []
    monkeypatch.setattr(Here, "requests", requests)
    monkeypatch.setattr(cluster_run, "DaskWorkers", Here)
    return requests
