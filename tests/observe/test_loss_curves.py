"""Losses of trainings in traces and in the pages made of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import flowcompute as fc
from flowcompute.metrics import StepTold
from flowcompute.observe.events import TrainingStepped
from flowcompute.observe.figures import trainings
from flowcompute.observe.loss_curves import MOST_POINTS, LossCurves
from flowcompute.observe.report_page import page_of

ROWS = np.random.default_rng(3).standard_normal((60, 4), dtype=np.float32)


def traced(path: Path) -> tuple[dict[str, Any], Any, Any]:
    w = fc.parameter(np.zeros(4, "f4"), name="w")
    error = ((fc.source(ROWS) @ w - 1.0) ** 2.0).mean()
    trained = fc.train.fit(error, fc.train.sgd(0.05), batch=20, epochs=3, evaluate={"mean": error, "loss": w.sum()})
    made = fc.run(trained.losses, trained.measures["mean"], trace=path, device="numpy", progress=False).values
    return json.loads(path.read_text()), *made


def test_a_trace_has_the_losses_and_a_report_draws_them(tmp_path: Path) -> None:
    trace, losses, mean = traced(tmp_path / "trace.json")
    curves = trace["otherData"]["trainings"]["fit"]
    assert curves["loss"]["steps"] == [*range(1, 10)]
    np.testing.assert_array_equal(np.float32(curves["loss"]["numbers"]), losses)
    assert curves["mean"]["steps"] == [3, 6, 9]
    np.testing.assert_array_equal(np.float32(curves["mean"]["numbers"]), mean)
    assert set(curves) == {"loss", "mean", "measured loss"}
    page = page_of(trace, "trace", "")
    assert '<div class="figure" id="trainings">' in page
    assert '"name": "mean"' in page


def test_a_run_without_a_training_has_no_curve(tmp_path: Path) -> None:
    fc.run(fc.source(ROWS).sum(), trace=tmp_path / "trace.json", device="numpy", progress=False)
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["otherData"]["trainings"] == {}
    assert 'id="trainings"' not in page_of(trace, "trace", "")
    # Traces of earlier versions say nothing of trainings.
    del trace["otherData"]["trainings"]
    assert 'id="trainings"' not in page_of(trace, "trace", "")


def test_curves_are_bounded_and_hold_what_json_holds() -> None:
    curves = LossCurves()
    for step in range(1, 5 * MOST_POINTS):
        curves.take(TrainingStepped(StepTold("fit", step, {"loss": math.nan if step == 1 else 1 / step})))
    made = curves.plain()["fit"]["loss"]
    assert made["numbers"][0] is None
    assert MOST_POINTS // 2 < len(made["steps"]) <= MOST_POINTS
    assert len({*np.diff(made["steps"])}) == 1
    assert all(number == 1 / step for step, number in zip(made["steps"][1:], made["numbers"][1:], strict=True))
    json.loads(json.dumps(made, allow_nan=False))


def test_several_trainings_are_told_apart() -> None:
    one = {"loss": {"steps": [1, 2], "numbers": [2.0, None]}}
    assert trainings({}) is None
    figure = trainings({"a": one, "b%{": one})
    assert figure is not None
    assert [line["name"] for line in figure["data"]] == ["loss of a", "loss of b%{"]
    assert all("%{y" in line["hovertemplate"] for line in figure["data"])


def test_progress_tells_loss_and_pace() -> None:
    w = fc.parameter(np.zeros(4, "f4"), name="w")
    trained = fc.train.fit(((fc.source(ROWS) @ w) ** 2.0).mean(), fc.train.sgd(0.05), batch=20)
    run = fc.run(trained["w"], device="numpy", progress=False)
    (note,) = run.notes
    assert note.startswith("loss 0 at step 3 of 3, ")
    assert note.endswith(" records/s")
