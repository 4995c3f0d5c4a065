"""Building programs and keeping them: whatever happens to the files, the next build works."""

from __future__ import annotations

import logging
import math
import os
import pickle
import stat
import time
import tracemalloc
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import KernelError
from flowcompute.files.user_cache import cache_folder, read_private
from flowcompute.gpu.device import program_cache as cache
from flowcompute.gpu.device import programs
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.device.program_cache import ProgramStore
from flowcompute.gpu.device.programs import build, complete_options, program_key, save_new_programs
from flowcompute.gpu.run import built_kernels
from flowcompute.gpu.worker.launcher import LocalLauncher
from tests.gpu.program_cache import TEXT, cache_of_its_own


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    return cache_of_its_own(tmp_path, monkeypatch)


@pytest.fixture
def device(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The CPU, as if nothing had been built in this process yet."""
    device = select_device("cpu", needs_float64=False)
    monkeypatch.setattr(device, "programs", {})
    monkeypatch.setattr(programs, "_UNSAVED", {})
    return device


def result(device: Device, program: cl.Program) -> list[float]:
    kernel = cl.Kernel(program, "scale")
    x = np.arange(4, dtype=np.float32)
    buffer = cl.Buffer(device.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    kernel.set_args(buffer, np.float32(1))
    cl.enqueue_nd_range_kernel(device.queue, kernel, (4,), (1,))
    cl.enqueue_copy(device.queue, x, buffer)
    return x.tolist()


def compiled_anew(device: Device, text: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Build as a new process would; whether that needed the compiler. The result must be right either way."""
    calls = []
    compile_text = programs._compiled
    with monkeypatch.context() as patch:
        patch.setattr(device, "programs", {})
        patch.setattr(programs, "_compiled", lambda *a: calls.append(a) or compile_text(*a))
        assert result(device, build(device, text)) == [0, 3, 6, 9]
    return bool(calls)


def test_equal_text_is_built_once_in_a_process(device: Device) -> None:
    first = build(device, TEXT % 1)
    assert build(device, TEXT % 1) is first
    assert build(device, TEXT % 2) is not first
    assert build(device, TEXT % 1, ["-DX=1"]) is not first
    assert result(device, first) == [0, 2, 4, 6]


def test_equal_kernels_of_a_graph_are_built_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    compiled = programs._compiled
    monkeypatch.setattr(programs, "_compiled", lambda *args: texts.append(args[3]) or compiled(*args))
    layers = [np.full((24, 24), number, np.float32) for number in (1, 2, 3, 4)]
    y: fc.Element = fc.source(np.eye(24, dtype=np.float32))
    for layer in layers:
        y = y @ layer
    plan = fc.plan(y)
    assert len(plan.kernels) == len(layers)
    with mock.patch.object(LocalLauncher, "build", autospec=True, side_effect=LocalLauncher.build) as made:
        np.testing.assert_array_equal(y.resolve(progress=False), np.linalg.multi_dot(layers))
    assert len(texts) == made.call_count == 1


def test_a_process_keeps_so_many_programs(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_MAX_PROGRAMS", 2)
    a, b = build(device, TEXT % 1), build(device, TEXT % 2)
    assert build(device, TEXT % 1) is a
    build(device, TEXT % 3)
    assert build(device, TEXT % 1) is a, "the longest unused goes first"
    assert build(device, TEXT % 2) is not b
    assert len(device.programs) == len(programs._UNSAVED) == 2


def test_keys_tell_apart_what_matters(device: Device) -> None:
    options = complete_options(device, ())
    key = program_key(device, "text", options)
    assert key == program_key(device, "text", list(options))
    others = {program_key(device, "Text", options), program_key(device, "text", (*options, "-DX"))}
    assert len(others | {key}) == 3


def test_options() -> None:
    device = select_device("cpu", needs_float64=False)
    assert complete_options(device, ["-DX", "-DX"]) == (
        "-DX",
        "-cl-std=CL1.2",
        "-cl-fp32-correctly-rounded-divide-sqrt",
        "-w",
    )
    assert complete_options(device, ["-cl-std=CL3.0"])[0] == "-cl-std=CL3.0"
    assert "-cl-std=CL1.2" not in complete_options(device, ["-cl-std=CL3.0"])
    assert not [option for option in complete_options(device, ()) if "fast" in option or "unsafe" in option]


def test_a_text_that_warns_warns_nobody(device: Device, capfd: pytest.CaptureFixture[str]) -> None:
    build(device, "__kernel void k(__global float *x) { int unused = 1.5; float16 a = x[0]; }")
    assert capfd.readouterr() == ("", "")


# -- keeping --------------------------------------------------------------------------------------


def test_kept_programs_need_no_compiler(device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled_anew(device, TEXT % 2, monkeypatch)
    build(device, TEXT % 2)
    assert save_new_programs() == 1
    assert save_new_programs() == 0
    assert not compiled_anew(device, TEXT % 2, monkeypatch)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_program_is_kept_whether_it_was_launched_or_not(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    build(device, TEXT % 2)
    save_new_programs()
    assert not compiled_anew(device, TEXT % 2, monkeypatch)


def test_nothing_is_kept_once_the_drivers_files_are_gone(
    device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(device, TEXT % 2)
    monkeypatch.setattr(cache, "_WORKING_FOLDERS", [str(folder / "removed")])
    assert save_new_programs() == 0
    monkeypatch.setattr(cache, "_WORKING_FOLDERS", [])
    assert save_new_programs() == 0
    assert compiled_anew(device, TEXT % 2, monkeypatch)


def test_saving_stops_at_its_limit(device: Device) -> None:
    build(device, TEXT % 2)
    assert save_new_programs(limit_s=0.0) == 0
    assert save_new_programs() == 1


def test_what_took_longest_is_kept_first_and_for_as_long_as_compiling_was_waited_for(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    limits: list[float] = []
    monkeypatch.setattr(programs.ProgramStore, "store", lambda store, key, content: kept.append(key))
    for factor in (2, 3, 4):
        build(device, TEXT % factor)
    keys = [*programs._UNSAVED]
    for key, spent_s in zip(keys, (1.0, 30.0, 9.0), strict=True):
        programs._UNSAVED[key] = (*programs._UNSAVED[key][:2], spent_s)
    with monkeypatch.context() as patch:
        patch.setattr(programs, "save_new_programs", limits.append)
        programs._save_when_it_ends()
        for spent_s in (20.0, 2.0):
            patch.setattr(programs, "_UNSAVED", {"one": (None, 0, spent_s)})
            programs._save_when_it_ends()
        patch.setattr(programs, "_UNSAVED", {})
        programs._save_when_it_ends()
    assert limits == [10.0, 6.0, 2.0, 0.5]
    assert save_new_programs() == 3
    assert kept == [keys[1], keys[2], keys[0]]


def test_after_a_long_run_keeping_takes_a_share_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a process has compiled, of other runs too, took half a second each before the result was given."""
    limits: list[float] = []
    monkeypatch.setattr(LocalLauncher, "keep_programs", lambda self, limit_s: limits.append(limit_s))
    monkeypatch.setattr(built_kernels, "LONG_RUN_S", math.inf)
    fc.source(np.ones(4, "f4")).sum().resolve(device="cpu")
    assert limits == []
    monkeypatch.setattr(built_kernels, "LONG_RUN_S", 0.0)
    began = time.monotonic()
    fc.source(np.ones(4, "f4")).sum().resolve(device="cpu")
    assert len(limits) == 1
    assert 0 < limits[0] < 0.05 * (time.monotonic() - began)


def test_reading_takes_memory_for_what_there_is(tmp_path: Path) -> None:
    """And not for the most that there may be, with each program that is read."""
    (tmp_path / "small").write_bytes(b"1234")
    tracemalloc.start()
    try:
        assert read_private(str(tmp_path / "small"), 1 << 28) == b"1234"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_damaged_files_are_made_again(device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(device, TEXT % 2)
    save_new_programs()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    damaged = [whole[:cut] for cut in (0, 1, 47, 48, 49, 1000, len(whole) // 2, len(whole) - 1)]
    damaged += [whole + b"\0", pickle.dumps(ValueError), b"\0" * len(whole), os.urandom(4096)]
    for place in (0, 8, 15, 16, 40, 48, 60, len(whole) // 3, len(whole) - 1):
        damaged.append(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
    key = file.name.removesuffix(".bin")
    for content in damaged:
        file.write_bytes(content)
        assert ProgramStore().load(key) is None
        assert not file.exists()
    file.write_bytes(damaged[6])
    assert compiled_anew(device, TEXT % 2, monkeypatch)
    save_new_programs()
    assert not compiled_anew(device, TEXT % 2, monkeypatch)


def test_a_whole_file_that_the_driver_refuses_is_made_again(
    device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = program_key(device, TEXT % 2, complete_options(device, ()))
    ProgramStore().store(key, b"of another driver")
    assert compiled_anew(device, TEXT % 2, monkeypatch)
    assert list(folder.iterdir()) == []


@given(content=st.binary(max_size=300), other=st.binary(max_size=300), data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_store_gives_back_what_was_kept_or_nothing(
    folder: Path, content: bytes, other: bytes, data: st.DataObject
) -> None:
    store = ProgramStore()
    store.store("a", content)
    store.store("b", other)
    assert (store.load("a"), store.load("b"), store.load("c")) == (content, other, None)
    file = folder / "a.bin"
    whole = file.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    bit = data.draw(st.integers(0, 7))
    file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
    assert store.load("a") is None
    file.write_bytes(whole[:place])
    assert store.load("a") is None
    os.replace(folder / "b.bin", file)
    assert store.load("a") is None, "a program under another's name"


def test_the_longest_unused_files_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ProgramStore()
    for age, key in enumerate("abc"):
        store.store(key, b"x" * 1000)
        os.utime(folder / f"{key}.bin", (age, age))
    (folder / "new-left").write_bytes(b"of a killed process")
    os.utime(folder / "new-left", (0, 0))
    assert store.load("a") == b"x" * 1000  # now the latest used
    monkeypatch.setattr(cache, "LIMIT_BYTES", 3200)
    ProgramStore().store("d", b"x" * 1000)
    assert {file.name for file in folder.iterdir()} == {"a.bin", "c.bin", "d.bin"}


# -- folders that are not ours --------------------------------------------------------------------


def test_the_folder_is_read_when_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path))
    assert cache_folder() == str(tmp_path)
    monkeypatch.delenv("FLOWCOMPUTE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == str(tmp_path / "x" / "flowcompute")
    for relative in ("", "here"):
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert cache_folder() == str(tmp_path / ".cache" / "flowcompute")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("level", ["cache", "programs"])
@pytest.mark.parametrize("wrong", ["group", "world", "owner", "link", "file"])
def test_a_folder_that_others_can_change_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, level: str, wrong: str
) -> None:
    ProgramStore().store("key", b"content")
    place = folder if level == "programs" else folder.parent
    if wrong in ("group", "world"):
        place.chmod(0o770 if wrong == "group" else 0o707)
    elif wrong == "owner":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    elif wrong == "link":
        place.rename(place.with_name("real"))
        place.symlink_to(place.with_name("real"))
    else:
        place.rename(place.with_name("real"))
        place.write_bytes(b"")
    monkeypatch.setattr(cache, "_LOGGED", set())
    trusted = wrong == "link" and level == "cache"  # the user may point FLOWCOMPUTE_CACHE anywhere
    with caplog.at_level(logging.WARNING):
        for store in (ProgramStore(), ProgramStore()):
            assert store.load("key") == (b"content" if trusted else None)
            store.store("other", b"")
            assert (store.load("other") == b"") == trusted
            store.remove("key" if not trusted else "none")
            assert (store.folder is None) == bool(store.reason) != trusted
    assert len(caplog.records) == (0 if trusted else 1), "said once"


def test_a_program_is_built_where_nothing_can_be_kept(
    device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert compiled_anew(device, TEXT % 2, monkeypatch)
    assert save_new_programs() == 0
    assert list(folder.iterdir()) == []


def test_a_file_that_others_can_change_is_not_used(folder: Path) -> None:
    store = ProgramStore()
    store.store("key", b"content")
    file = folder / "key.bin"
    file.chmod(0o666)
    assert store.load("key") is None
    file.chmod(0o600)
    assert store.load("key") == b"content"
    file.rename(folder / "real")
    file.symlink_to(folder / "real")
    assert store.load("key") is None
    file.unlink()
    file.mkdir()
    assert store.load("key") is None


def test_a_full_disk_loses_nothing_but_the_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    store = ProgramStore()
    store.store("key", b"content")
    assert store.load("key") is None
    assert list(folder.iterdir()) == []


# -- errors ---------------------------------------------------------------------------------------


def test_a_compile_error_shows_the_lines_round_it(device: Device) -> None:
    lines = ["__kernel void k(__global float *x) {", *(f"    x[{n}] = {n};" for n in range(20)), "}"]
    lines[11] = "    x[10] = missing(10);"
    with pytest.raises(KernelError) as caught:
        build(device, "\n".join(lines))
    said = str(caught.value)
    assert f"cannot compile a kernel on {device.capabilities.name}" in said
    assert "missing" in caught.value.message.splitlines()[1]
    assert ">   12 |     x[10] = missing(10);" in said
    assert "     9 |     x[7] = 7;" in said
    assert "    15 |     x[13] = 13;" in said
    assert "16 |" not in said
    assert "/" not in caught.value.message, "no path of a temporary file"
    assert "-cl-std=CL1.2" in said


def test_wrong_options_are_a_kernel_error(device: Device) -> None:
    with pytest.raises(KernelError, match="cannot compile a kernel"):
        build(device, TEXT % 1, ["-no-such-option"])


@pytest.mark.parametrize("log", ["<kernel>:2:5: error: bad", "2:5: error: bad", "error: /tmp/a_b/f.cl:2:5: bad"])
def test_logs_of_other_drivers(log: str) -> None:
    device = select_device("cpu", needs_float64=False)
    error = programs._compile_error(device, "one\ntwo\nthree", (), f"{log}\n\n1 error")
    assert ">    2 | two\n     3 | three" in str(error)


def test_a_log_without_a_line_is_shown_as_it_is() -> None:
    device = select_device("cpu", needs_float64=False)
    assert "out of registers" in str(programs._compile_error(device, "one", (), "out of registers"))
