"""What is shown: on a terminal, elsewhere, and when nobody can see it."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

import flowcompute as fc
from flowcompute.errors import RunError
from flowcompute.metrics import Checkpoints, Progress
from flowcompute.runtime.channels.progress_line import Display, describe
from flowcompute.runtime.channels.run_record import RunRecord
from tests.runtime.fakes import Scene, full_job
from tests.support.starting import start


def test_one_line_says_it_all():
    progress = Progress(items=1_500, total_items=6_000, bytes_read=3_000_000, seconds=2.0, done=False)
    assert describe(progress, "tanh") == "1,500 of 6,000 records (25%), 1.5 MB/s, 0:06 left, busiest: tanh"
    assert describe(Progress(7, None, 0, 1.0, False), None) == "7 records, 0 bytes/s"
    assert describe(Progress(9, 9, 90, 3.0, True), None) == "9 records (100%), 30 bytes/s, 3.0 s"
    assert describe(Progress(0, 9, 0, 0.0, False), None) == "0 of 9 records (0%), 0 bytes/s"


def test_the_line_tells_what_was_skipped_and_how_old_the_checkpoint_is():
    progress = Progress(items=10, total_items=20, bytes_read=0, seconds=600.0, done=False, skipped=3)
    line = describe(progress, "tanh", Checkpoints(2, 1, age_s=41.6))
    assert line.endswith("10:00 left, 3 skipped, busiest: tanh, checkpoint 42 s ago")
    assert "ago" not in describe(progress, None, Checkpoints())
    assert "ago" not in describe(Progress(20, 20, 0, 1.0, True), None, Checkpoints(2, 1, age_s=41.6))


def test_fractions_of_nothing():
    assert Progress(0, 0, 0, 1.0, False).fraction == 0.0
    assert Progress(0, 0, 0, 1.0, True).fraction == 1.0
    assert Progress(5, None, 0, 1.0, True).fraction is None
    assert Progress(5, 4, 0, 1.0, False).fraction == 1.0


@pytest.mark.parametrize(
    ("progress", "terminal", "shown"),
    [(True, True, "bar"), (True, False, "line"), (None, True, "bar"), (None, False, ""), (False, True, "")],
)
def test_who_sees_what(progress, terminal, shown):
    out = io.StringIO()
    record = RunRecord(100, 0)
    display = Display.start(record, progress, Console(file=out, force_terminal=terminal, width=100))
    record.resume(Progress(items=7, total_items=100, bytes_read=0, seconds=0.0, done=False))
    record.end(RunError("stopped"))
    if display is not None:
        display.stop()
    assert bool(out.getvalue()) == bool(shown)
    if shown:
        assert "7 of 100 records" in out.getvalue()
        assert ("\x1b" in out.getvalue()) == (shown == "bar")


def test_a_terminal_that_breaks_does_not_break_the_run(monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", Broken())
    scene = Scene()
    run = start(full_job(scene).planned(), progress=True)
    assert len(run.wait(30).values) == 4
    scene.assert_put_away(committed=True)


def test_lines_go_to_standard_error(capsys):
    start(full_job(Scene()).planned(), progress=True).wait(30)
    shown = capsys.readouterr()
    assert "10 records (100%)" in shown.err
    # Which one it is hangs on the clock.
    assert re.search(r"busiest: \w+", shown.err)
    assert shown.out == ""


def test_a_narrow_terminal_shows_the_loss_of_a_training():
    told = "loss 0.25 at step 3 of 9"
    line = describe(Progress(3, 9, 0, 1.0, False), "fit", Checkpoints(1, 1, age_s=2.0), [told])
    assert line == f"3 of 9 records (33%), 0 bytes/s, 0:02 left; {told}; busiest: fit, checkpoint 2 s ago"


def test_a_step_of_a_training_counts_as_its_records():
    rows = np.random.default_rng(0).standard_normal((200, 3), dtype=np.float32)
    x, w = fc.source(rows), fc.parameter(np.ones(3, np.float32), name="w")
    trained = fc.train.fit((x @ w).mean(), fc.train.sgd(0.1), batch=50, epochs=3)
    # A pass of 12 steps, then one of 200 records.
    seen = []
    run = fc.start(
        trained.apply(x @ w).sum(),
        on_batch=lambda run: seen.append(run.progress),
        device="numpy",
        progress=False,
    )
    run.wait()
    of_steps = [one for one in seen if one.current.number == 1 and one.current.items == 6]
    assert [one.fraction for one in of_steps] == [6 * 50 / (600 + 200)]
    assert [one.remaining_s / one.seconds for one in of_steps] == [pytest.approx(500 / 300)]
    assert run.progress.fraction == 1
