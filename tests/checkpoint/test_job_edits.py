"""What becomes of a frozen job when its program or its files were edited: each edit its outcome, none silent."""

from __future__ import annotations

import linecache
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.difference import check_sources, differences
from flowcompute.checkpoint.job.rebuild import rebuild_job
from tests.checkpoint.kept import Store, described

PROGRAM = """
import functools
import math

import numpy as np

import flowcompute as fc

FACTOR = 3.0


@fc.kernel
def tilted(a, b):
    # how steep it is
    slope = a * FACTOR
    return slope + b


def scaled(k):
    def twice(batch, offset=1.0):
        return batch * k + offset

    return twice


def step(carry, item):
    return carry * 0.5 + item


x = fc.open(folder + "/x.npy", name="x")
r = fc.open(folder + "/r.raw", dtype="f4", shape=(3,))
m = fc.source(np.arange(12.0))
w = fc.constant(np.arange(9.0).reshape(3, 3))
t = tilted(x - r, 2.0)
h = fc.host(scaled(2), t, on_error="skip")
s = fc.scan(step, m, init=0.0)
c = fc.window(x, 3, pad=math.nan)
k = fc.opencl("float f(float a) { return a * 2; }", r)
n = fc.random.normal(12, seed=5)
p = fc.spool(m, folder=folder)
roots = [
    t @ w >> fc.save(folder + "/y.npy"),
    h.sum(axis=0) >> fc.to_array(),
    s + n >> fc.to_array(),
    c.mean(axis=1) >> fc.save(folder + "/c.raw"),
    k >> fc.to_array(),
    p - p.mean() >> fc.discard(),
    fc.quantile(m, [0.25, 0.5]) >> fc.to_array(),
    fc.cut(m.astype("f4"), 4) >> fc.callback(print),
]
"""

SAME = {
    "nothing": [],
    "an element renamed": [('name="x"', 'name="records"')],
    "an element that had no name": [("shape=(3,))", 'shape=(3,), name="raw")')],
    "lines moved": [("FACTOR = 3.0", "\n\nFACTOR = 3.0  # as in the paper")],
    "variables renamed": [("w = fc", "weights = fc"), ("t @ w", "t @ weights")],
    "a kernel's comment": [("# how steep it is", "# its slope\n")],
    "a host function's comment": [("        return batch", "        # as always\n        return batch")],
    "another callback": [("callback(print)", "callback(repr)")],
    "a number written otherwise": [("FACTOR = 3.0", "FACTOR = 1.5 * 2")],
    "a part that is written twice": [("p - p.mean()", "fc.spool(m, folder=folder) - p.mean()")],
}

EDITED = {
    "operands in another order": ([("x - r", "r - x")], ["subtract", "takes (open, x), and took (x, open)"]),
    "operands that commute": ([("p - p.mean()", "p - p.mean() + p"), ], ["new in the job: add"]),
    "another operation": ([("x - r", "x + r")], ["no longer in the job: subtract(x, open)", "new in the job: add(x, open)"]),
    "another dtype": ([('m.astype("f4")', 'm.astype("f2")')], ["has dtype=float16, and had dtype=float32"]),
    "another constant": ([("np.arange(9.0)", "np.arange(9.0)[::-1]")], ["constant", "has other values"]),
    "a constant of another dtype": ([("np.arange(9.0)", "np.arange(9.0, dtype='f4')")], ["is float32, and was float64"]),
    "a number": ([("tilted(x - r, 2.0)", "tilted(x - r, -2.0)")], ["is -2.0 (float32), and was 2.0 (float32)"]),
    "an attribute": ([("fc.cut(m.astype(\"f4\"), 4)", "fc.cut(m.astype(\"f4\"), 6)")], ["has every=6, and had every=4"]),
    "a float attribute": ([("[0.25, 0.5]", "[0.25, 0.75]")], ["quantile", "q=", "0.75"]),
    "what is padded with": ([("pad=math.nan", "pad=-0.0")], ["has pad=-0.0, and had pad=nan"]),
    "an axis": ([("c.mean(axis=1)", "c.mean(axis=0)")], ["no longer in the job: mean.sum", "new in the job: mean"]),
    "a kernel": ([("slope + b", "slope - b")], ["tilted", "is a kernel that does something else"]),
    "a number that a kernel captures": ([("FACTOR = 3.0", "FACTOR = 4.0")], ["is a kernel that does something else"]),
    "a host function": ([("batch * k", "batch / k")], ["twice", "has a function that does something else"]),
    "a number in a closure": ([("scaled(2)", "scaled(3)")], ["has a function that does something else"]),
    "a default": ([("offset=1.0", "offset=2.0")], ["has a function that does something else"]),
    "a scan's step": ([("carry * 0.5", "carry * 0.25")], ["step", "has a function that does something else"]),
    "a scan's first carry": ([("init=0.0", "init=-0.0")], ["begins with another carry"]),
    "a policy": ([('on_error="skip"', 'on_error="dead_letter", dead_letter=folder + "/d"')], ["on_error is dead_letter, and"]),
    "an OpenCL text": ([("a * 2;", "a * 3;")], ["has another OpenCL text"]),
    "a seed": ([("seed=5", "seed=6")], ["is 6 (uint64), and was 5 (uint64)", "seed is 6, and was 5"]),
    "a source's path": ([("/x.npy", "/other.npy")], ["reads ", "other.npy, and read "]),
    "how a source is read": ([('dtype="f4", shape=(3,)', 'dtype=">f4", shape=(3,)')], ["reads ", " in another way"]),
    "sources exchanged": ([("fc.window(x", "fc.window(r")], ["window", "takes (open), and took (x)"]),
    "an array": ([("m = fc.source(np.arange(12.0))", "m = fc.source(np.arange(12.0) + 1)")], ["source", "has other values"]),
    "a longer array": ([("np.arange(12.0)", "np.arange(24.0)"), ("12, seed", "24, seed")], ["length is 24, and was 12"]),
    "a destination's path": ([("/y.npy", "/z.npy")], ["save", "writes to ", "z.npy, and wrote to "]),
    "a destination's format": ([("/c.raw\"", "/c.npy\"")], ["no longer in the job: save", "new in the job: save"]),
    "where a spool lies": ([("spool(m, folder=folder)", "spool(m)")], ["has folder=None, and had folder="]),
    "a result less": ([("    k >> fc.to_array(),\n", "")], ["no longer in the job: f = opencl(open)"]),
    "a result more": ([("    k >> fc", "    n >> fc.discard(),\n    k >> fc")], ["new in the job: discard(normal(seed=5))"]),
    "results in another order": ([("    k >> fc.to_array(),\n    p - p.mean() >> fc.discard(),\n", "    p - p.mean() >> fc.discard(),\n    k >> fc.to_array(),\n")], ["the same elements come in another order"]),
}  # fmt: skip


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: Path) -> Path:
    rows = np.arange(36, dtype="f4").reshape(12, 3)
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "other.npy", rows)
    (tmp_path / "r.raw").write_bytes(rows[::-1].tobytes())
    return tmp_path


def roots_of(folder: Path, edits: list[tuple[str, str]], version: str = "") -> list[Any]:
    """The roots of the program, edited, as a file that Python can read functions from."""
    text = PROGRAM
    for old, new in edits:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    path = folder / f"job{version}.py"
    path.write_text(text)
    linecache.checkcache()
    space: dict[str, Any] = {"folder": str(folder), "__name__": "job"}
    exec(compile(text, str(path), "exec"), space)
    return list(space["roots"])


@pytest.mark.parametrize("edit", SAME)
def test_edits_that_leave_the_job_the_same(folder: Path, edit: str) -> None:
    then, now = described(*roots_of(folder, [])), described(*roots_of(folder, SAME[edit], "2"))
    assert differences(then, now) == []


@pytest.mark.parametrize("edit", EDITED)
def test_edits_that_make_another_job(folder: Path, edit: str) -> None:
    edits, words = EDITED[edit]
    then, now = described(*roots_of(folder, [])), described(*roots_of(folder, edits, "2"))
    lines = differences(then, now)
    assert lines
    for word in words:
        assert any(word in line for line in lines), (word, lines)
    assert any("job2.py:" in line or "job.py:" in line for line in lines) or "order" in lines[0], lines
    assert all(line.isprintable() and len(line) < 1000 for line in lines)


def test_what_became_another_version(folder: Path) -> None:
    then = described(*roots_of(folder, []))
    (line,) = differences(then, {**then, "order": 2})
    assert line == "the canonical order of reductions was version 1 and is 2"
    (line,) = differences({**then, "format": 0}, then)
    assert line == "the format of job data was version 0 and is 1"


def test_functions_are_compared_under_one_python_only(folder: Path) -> None:
    then = described(*roots_of(folder, []))
    now = described(*roots_of(folder, [("batch * k", "batch / k")], "2"))
    assert differences({**then, "python": "3.99"}, now) == []


def test_many_differences_are_counted() -> None:
    x = fc.source(np.arange(6.0))
    then, now = (described(*[x * (i + by) >> fc.discard() for i in range(40)]) for by in (100, 1000))
    lines = differences(then, now)
    assert len(lines) == 21
    assert lines[-1] == "and 20 more differences"


# -- files -------------------------------------------------------------------------------------------


def replaced(path: Path, data: bytes) -> None:
    """Another file of that name, with the same time of change."""
    status = path.stat()
    path.with_name("new").write_bytes(data)
    os.replace(path.with_name("new"), path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def written_over(path: Path, at: int, keep_time: bool) -> None:
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        old = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([old[0] ^ 0x80]))
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(12))


CHANGED: dict[str, tuple[Callable[[Path], object], str, bool]] = {
    "appended to": (appended, "it had {size} bytes and has {more}", False),
    "cut off": (lambda path: os.truncate(path, path.stat().st_size - 12), "it had {size} bytes and has {less}", False),
    "emptied": (lambda path: os.truncate(path, 0), "it had {size} bytes and has 0", False),
    "first byte": (lambda path: written_over(path, 0, True), "its content is another", False),
    "last byte": (lambda path: written_over(path, -1, True), "its content is another", True),
    "a byte of the middle": (lambda path: written_over(path, 140, False), "its content is another", True),
    "replaced with the same size and time": (
        lambda path: replaced(path, path.read_bytes()[:-12] + bytes(12)), "its content is another", True,
    ),
    "touched": (lambda path: os.utime(path, ns=(0, 0)), "(size and sampled content are the same)", True),
    "removed": (lambda path: path.unlink(), "cannot be read: No such file", False),
    "made a folder": (lambda path: (path.unlink(), path.mkdir()), "cannot be read", False),
    "made a pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "cannot be read", False),
}  # fmt: skip
"""What is done to a file, what is said of it, and whether the same job can be composed of it all the same."""

UNCHANGED: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "copied with its times": lambda path: (shutil.copy2(path, f"{path}2"), os.replace(f"{path}2", path)),
    "changed and changed back": lambda path: (written_over(path, -1, True), written_over(path, -1, True)),
    "moved away and back": lambda path: (os.replace(path, f"{path}2"), os.replace(f"{path}2", path)),
    "read by others": lambda path: path.chmod(0o444),
    "linked": lambda path: os.link(path, f"{path}2"),
}


def of_a_file(path: Path) -> dict[str, Any]:
    x = fc.open(path, dtype="f4", shape=(3,)) if path.suffix == ".raw" else fc.open(path)
    return described(x.sum(axis=0))


@pytest.mark.parametrize("name", ["x.npy", "r.raw"])
@pytest.mark.parametrize("change", CHANGED)
def test_a_file_that_changed_is_named(folder: Path, name: str, change: str) -> None:
    path = folder / name
    size = path.stat().st_size
    then = of_a_file(path)
    do, words, sound = CHANGED[change]
    do(path)
    (line,) = check_sources(then)
    assert line.startswith(f"{path} ")
    assert words.format(size=size, more=size + 12, less=size - 12) in line
    if sound and name == "r.raw":
        assert any(str(path) in line for line in differences(then, of_a_file(path)))
    # Who made the description chose the path: a file in another state is not the one that it was made from.
    with pytest.raises(fc.CheckpointError, match=name.replace(".", r"\.")):
        rebuild_job(then, Store().get, {})


@pytest.mark.parametrize("change", UNCHANGED)
def test_a_file_in_the_same_state_is_the_same(folder: Path, change: str) -> None:
    path = folder / "x.npy"
    then = of_a_file(path)
    UNCHANGED[change](path)
    assert check_sources(then) == []
    assert differences(then, of_a_file(path)) == []


def test_of_a_large_file_sixteen_blocks_are_seen(folder: Path) -> None:
    path, size = folder / "large.raw", 1 << 20
    path.write_bytes(bytes(size))
    then = described(fc.open(path, dtype="u1"))
    seen = [0, 4095, size - 4096, size - 1, *(i * (size - 4096) // 15 for i in range(16))]
    for at in seen:
        written_over(path, at, True)
        assert "its content is another" in check_sources(then)[0], at
        written_over(path, at, True)
    # Between them the time of change alone tells: it is what the promise says.
    written_over(path, 4096, True)
    assert check_sources(then) == []
    written_over(path, 4096, False)
    assert "its time of change was" in check_sources(then)[0]


def test_each_of_several_files_is_looked_at(tmp_path: Path) -> None:
    paths = [tmp_path / f"{day}.npy" for day in range(3)]
    for path in paths:
        np.save(path, np.ones((4, 2)))
    then = described(fc.open(tmp_path / "*.npy"))
    status = paths[0].stat()
    appended(paths[0])
    paths[2].unlink()
    assert [line.split()[0] for line in check_sources(then)] == [str(paths[0]), str(paths[2])]
    np.save(paths[0], np.ones((4, 2)))
    os.utime(paths[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(fc.CheckpointError, match=r"2\.npy"):
        rebuild_job(then, Store().get, {})
    now = described(fc.open(tmp_path / "*.npy"))
    assert any("reads 2 files, and read 3" in line for line in differences(then, now))
