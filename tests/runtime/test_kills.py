"""SIGKILL at random moments: whoever starts the job again gets the bytes of a job that nobody killed."""

from __future__ import annotations

import os

import pytest

from tests.runtime.kills import PIPELINES, trial


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPELINES)
def test_a_job_that_is_killed_again_and_again_gives_the_same_bytes(name: str) -> None:
    seed = int.from_bytes(os.urandom(3), "little")
    got = trial(name, 4, seed, "cpu" if name == "folds in two passes" else "numpy")
    assert got.equal, f"seed {seed}: {got}"
    assert got.left == [], f"seed {seed}"
    assert got.kills, f"seed {seed}: it was never killed"
