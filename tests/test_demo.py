"""The demo: its answer, its screen, and what it refuses."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from rich.console import Console

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.demo import moon_distance as demo
from flowcompute.demo.ephemeris import DE421, ellipse


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, so that nothing was fetched before."""
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def middle_km(items: np.ndarray) -> np.ndarray:
    """The distances by NumPy's own Chebyshev polynomials."""
    return np.linalg.norm([chebyshev.chebval(0.0, items[:, axis].T) for axis in range(3)], axis=0)


@pytest.mark.parametrize("device", ["auto", "numpy"])
def test_the_distance_is_that_of_the_polynomials(device: str) -> None:
    items = ellipse(0, 500)
    got = demo.distance(fc.source(items)).resolve(device=device)
    np.testing.assert_allclose(got, middle_km(items), rtol=1e-14)


def test_it_is_one_kernel() -> None:
    km = demo.distance(fc.source(ellipse(0, 8)))
    assert len(fc.plan(km, km.min(), km.mean(), km.max()).kernels) == 1


def test_offline_it_generates_a_file_says_so_and_answers(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--offline"]) == 0
    out, err = capsys.readouterr()
    assert "generated" in out
    km = middle_km(ellipse(0, DE421.items))
    assert f"{km.min():,.0f} to {km.max():,.0f} km, {km.mean():,.0f} km on average" in out
    assert "1,000 distances against NumPy" in out
    assert "8.6 MB read, 219.3 kB written" in out
    assert "in 2.1 MB of memory" in out
    assert "27,408 records (100%)" in err
    for label in ("items", "speed", "bottleneck", "memory", "kernels     1, launched", "device", "dropped"):
        assert label in out
    assert len(out.splitlines()) <= 24, "one screen"


def test_it_keeps_its_result_where_told(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = cache / "new" / "folder"
    assert main(["demo", "--offline", "--no-progress", "--device", "numpy", "--keep", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "none: NumPy computed it" in out
    km = np.load(folder / demo.RESULT)
    assert km.shape == (DE421.items,)
    assert km.dtype == np.float64
    assert 356_000 < km.min() < km.max() < 407_000
    assert [path.name for path in folder.iterdir()] == [demo.RESULT]


def test_without_a_choice_its_result_is_gone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert main(["demo", "--offline", "--no-progress", "--device", "numpy"]) == 0
    assert list(folder.iterdir()) == []


def test_its_budget_is_the_users(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--offline", "--no-progress", "--memory", "100MiB"]) == 0
    assert "in 104.9 MB of memory" in capsys.readouterr().out
    assert main(["demo", "--offline", "--no-progress", "--memory", "1KiB"]) == 2
    assert "memory" in capsys.readouterr().err


def test_its_options_are_those_of_plan(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[demo.DemoReport] = []
    whole = demo.summary
    monkeypatch.setattr("flowcompute.cli.command.summary", lambda report: reports.append(report) or whole(report))
    known = ["--precision", "fast", "--strategy", "depth=3", "--input", "mapped", "--device-memory", "1GiB"]
    assert main(["demo", "--offline", "--no-progress", *known]) == 0
    assert main(["demo", "--offline", "--no-progress", "--strategy", "depth=3"]) == 0
    mapped, read = (report.run.plan for report in reports)
    assert mapped.config.precision == "fast"
    assert (mapped.strategy.input, mapped.strategy.depth) == ("mapped", 3)
    assert (read.strategy.input, read.strategy.depth) == ("read", 3)


def test_its_speed_is_that_of_the_run(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fc.run

    around: list[tuple[float, float]] = []

    def noted(*roots: Any, on_batch: Callable[[fc.Run], None], **options: Any) -> Any:
        def between(run: fc.Run) -> None:
            before = run.seconds
            on_batch(run)
            around.append((before, run.seconds))

        return run(*roots, on_batch=between, **options)

    monkeypatch.setattr(fc, "run", noted)
    report = demo.run_demo(offline=True, progress=False, device="numpy", console=Console(file=io.StringIO()))
    assert 0 < around[0][0] <= report.started_s <= around[0][1] <= report.run.seconds
    (speed,) = (text for label, text in demo._lines(report) if label == "speed")
    assert float(speed.split()[0]) > 0


def test_a_folder_that_cannot_be_made_is_told(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "file").write_text("")
    assert main(["demo", "--offline", "--no-progress", "--keep", str(cache / "file" / "x")]) == 1
    assert "cannot make" in capsys.readouterr().err


def test_a_wrong_answer_is_an_error_and_no_summary(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = demo.distance
    monkeypatch.setattr(demo, "distance", lambda moon: right(moon) + 1e-5)
    assert main(["demo", "--offline", "--no-progress"]) == 1
    out, err = capsys.readouterr()
    assert "NumPy's differ" in err
    assert "on average" not in out
