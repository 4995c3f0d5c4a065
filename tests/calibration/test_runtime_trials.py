"""Trials of OpenCL runtimes: what is right, what is kept, and which one is taken."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.calibration import runtime_trials, try_runtimes
from flowcompute.calibration.trial_jobs import CHECKED, try_device
from flowcompute.cli.command import main
from flowcompute.errors import PlanError
from flowcompute.gpu.device import describe_devices
from flowcompute.gpu.device.discovery import choose, ordered
from flowcompute.strategy import RuntimeTrial, load_runtime_trial, save_runtime_trial
from tests.gpu.test_device import DISCRETE, INTEL, NEWER, WHEEL


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache. Devices are listed before, since the order of this process is read once."""
    rows = describe_devices()
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    return rows


def chosen(*devices):
    return choose(ordered(devices), "auto", needs_float64=False)


def test_the_fastest_runtime_that_is_right_is_taken(cache):
    assert chosen(INTEL, NEWER, WHEEL).is_same(WHEEL)
    for device, seconds in ((WHEEL, 1.0), (NEWER, 2.0), (INTEL, 0.5)):
        assert save_runtime_trial(device.identity, RuntimeTrial("", seconds))
    taken = chosen(WHEEL, NEWER, INTEL)
    assert taken.is_same(INTEL)
    assert taken.capabilities.reason.endswith("the fastest that was right here")
    # It ended the process, or had other numbers.
    save_runtime_trial(INTEL.identity, RuntimeTrial("softmax: other numbers than NumPy's", 0.0))
    assert chosen(INTEL, NEWER, WHEEL).is_same(WHEEL)
    assert [one.is_same(INTEL) for one in ordered([INTEL, NEWER, WHEEL])] == [False, False, True]


def test_a_tenth_is_no_reason_to_leave_the_runtime_that_all_tests_pass_on(cache):
    save_runtime_trial(WHEEL.identity, RuntimeTrial("", 1.0))
    save_runtime_trial(INTEL.identity, RuntimeTrial("", 0.95))
    assert chosen(INTEL, WHEEL).is_same(WHEEL)
    save_runtime_trial(INTEL.identity, RuntimeTrial("", 0.85))
    assert chosen(INTEL, WHEEL).is_same(INTEL)


def test_what_was_tried_goes_before_what_was_not_and_a_gpu_before_both(cache):
    save_runtime_trial(INTEL.identity, RuntimeTrial("", 9.0))
    assert chosen(NEWER, WHEEL, INTEL).is_same(INTEL)
    assert chosen(NEWER, WHEEL, INTEL, DISCRETE).is_same(DISCRETE)
    # With one runtime there is nothing to choose, and what is kept of it tells nothing.
    save_runtime_trial(WHEEL.identity, RuntimeTrial("wrong", 0.0))
    assert chosen(WHEEL).capabilities.reason.startswith("auto: the only OpenCL device")


@pytest.mark.compiles
def test_this_machines_device_is_right_and_timed(cache):
    (first, *_) = cache
    trial = try_runtimes([first])[first.spec]
    assert (trial.problem, load_runtime_trial(first.identity)) == ("", trial)
    assert trial.seconds > 0


@pytest.mark.parametrize("name", CHECKED)
def test_each_job_tells_a_device_that_is_wrong(name):
    make = CHECKED[name]
    calls = []

    def once_wrong(x):
        calls.append(None)
        return make(x) if len(calls) == 2 else make(x) + 1

    assert try_device("numpy", {name: make}, {}).problem == ""
    assert try_device("numpy", {name: once_wrong}, {}).problem == f"{name}: other numbers than NumPy's"


def test_errors_are_outcomes():
    fails = lambda x: fc.host(lambda numbers: 1 / 0, x["f4"], dtype="float32", shape=(1024,))  # noqa: E731
    assert try_device("numpy", {"failing": fails}, {}).problem.startswith("failing: ")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("import os; os._exit(7)", "its process ended with 7: no word"),
        ("raise ValueError('a faulty driver')", "its process ended with 1: ValueError: a faulty driver"),
        ("import os; os.kill(os.getpid(), 11)", "its process ended with -11"),
        ("print('no JSON')", "its process gave no outcome"),
        ("print()", "its process gave no outcome"),
        ("import json; print(json.dumps({'problem': 1, 'seconds': 1.0}))", "its process gave no outcome"),
        ('print(\'{"problem": "", "seconds": -1.0}\')', "its process gave no outcome"),
        ("import threading; threading.Event().wait()", "no answer within 0.5 s"),
    ],
)
def test_a_process_that_does_not_answer_is_an_outcome(cache, monkeypatch, body, problem):
    monkeypatch.setattr(runtime_trials, "_START", body)
    (trial,) = try_runtimes(cache[:1], limit_s=0.5 if "within" in problem else 60).values()
    assert trial.problem.startswith(problem)
    assert load_runtime_trial(cache[0].identity) == trial


def test_the_outcome_is_the_last_line(cache, monkeypatch):
    plain = RuntimeTrial("", 0.25).plain()
    monkeypatch.setattr(runtime_trials, "_START", f"print('a driver says hello'); print({json.dumps(plain)!r})")
    assert list(try_runtimes(cache[:1]).values()) == [RuntimeTrial("", 0.25)]


def test_the_command_line_tries_runtimes_where_there_are_several(cache, monkeypatch, capsys):
    seen = []

    def tried(rows):
        seen.extend(row.spec for row in rows)
        return {row.spec: RuntimeTrial("", 1.0) for row in rows}

    command = sys.modules["flowcompute.cli.command"]
    monkeypatch.setattr(command, "try_runtimes", tried)
    monkeypatch.setattr(command, "measured", lambda backend, again: None)
    runtime = dataclasses.replace(cache[0], type="cpu")
    monkeypatch.setattr(command, "describe_devices", lambda: [runtime] * 2)
    assert main(["devices", "--measure"]) == 0
    assert seen == [cache[0].spec] * 2
    assert "takes the fastest of those that are right" in capsys.readouterr().out.replace("\n", " ")
    seen.clear()
    monkeypatch.setattr(command, "describe_devices", lambda: [runtime])
    assert main(["devices", "--measure"]) == 0
    assert seen == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"identity": 1, "trial": {}}', '{"problem": "", "seconds": 1}'])
def test_outcomes_that_cannot_be_read_are_missing(cache, tmp_path, text):
    assert save_runtime_trial("a", RuntimeTrial("", 1.0))
    (kept,) = (tmp_path / "cache" / "runtimes").iterdir()
    good = kept.read_text()
    for bad in (text, good.replace("1.0", "-1.0"), good.replace("1.0", "Infinity"), good.replace('"a"', '"b"')):
        kept.write_text(bad)
        assert load_runtime_trial("a") is None
    with pytest.raises(PlanError, match="time of trial jobs"):
        RuntimeTrial("", float(np.nan))
