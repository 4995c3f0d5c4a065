"""What tests of built programs share: a text, and a cache of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

TEXT = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void scale(__global float *x, const float by) { x[get_global_id(0)] *= by + %d.0f; }
"""


def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are kept during the test, and by the processes that it starts."""
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "programs"
