"""Every family of kernels under oclgrind: races, uninitialised values, places outside of buffers, wrong answers.

    scripts/oclgrind [FAMILY ...] [--shape cpu|gpu] [--size N] [--without TEXT]

Each family runs in both code shapes, at sizes of 1, a work-group less one, and three work-groups and
one more: numbers, records, the length of rows or keys, whatever its work-groups run along. Where a CPU's
work-group is one work-item, a vector stands for it. The exit code is 1 if anything is reported.

Buffers are those of a discrete device, with no byte more than a value has, and live as long as the
process: oclgrind takes memory that the host lends for memory that nobody wrote, rounding up would hide
what reads too far, and what oclgrind knows of a buffer outlives it and is told of the next one there.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import flowcompute as fc
from flowcompute.errors import FlowError
from flowcompute.gpu import OpenCLBackend, rendered_programs
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.memory import device_buffers as buffers
from flowcompute.gpu.render.renderer import render
from flowcompute.ir.kernel import Kernel
from flowcompute.jobs import job_of
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.strategy.strategy import Strategy
from tests.gpu.oclgrind_families import FAMILIES
from tests.support.starting import start

SHAPES = ("cpu", "gpu")
LIMIT_S, HANGS_S = 300, 3600
"""Seconds of the processor that a family takes at most in a shape; seconds after which it hangs, on any machine."""
LOCAL_BYTES = 48 << 10
"""Local memory of the GPUs that kernels are written for; oclgrind's own is smaller."""

OPTIONS = (
    *("--data-races", "--uninitialized", "--check-api", "--max-errors", "1000000"),
    *("--num-threads", "1", "--local-mem-size", str(LOCAL_BYTES), "--build-options", "-cl-opt-disable"),
)

NOTES = {
    "tensor cores": "products and attention by mma.sync are inline PTX; tests/gpu/emulator.py runs their IR",
    "shuffles": "sums across a team by shuffles, scans that look back and dp4a itself are PTX as well; "
    "what runs here is what other GPUs get in their place",
    "vectors of 16": "oclgrind takes what is made of their lanes 8 to 15 by .hi, .odd or .s89ab for never written, and "
    "what its compiler optimises breaks that check as well: texts name such lanes one by one, compiled as they stand",
    "tickets": "one work-group at a time runs to its end, so that one takes every tile of a scan: "
    "order and bounds are seen, groups that wait for one another are not",
    "copies": "oclgrind takes what a driver fills or copies for never written, and forgets a buffer of which the host "
    "writes a part: kernels write fills, parts and copies between buffers in their place",
    "fetching ahead": "oclgrind knows no prefetch instruction, which may name any address: texts leave it out",
}
"""What cannot be seen here, and why."""


_COPY = """
__kernel void copied(__global const uchar *from, const ulong at, __global uchar *to, const ulong there) {
    size_t i = get_global_id(0);
    to[there + i] = from[at + i];
}
"""

_DECLARED_OR_PART = re.compile(
    r"\b(?P<base>u?(?:char|short|int|long)|float|double)(?P<lanes>\d+) (?P<name>\w+)"
    r"|\b(?P<of>\w+)\.(?P<part>hi|odd|s[0-9a-f]{2,})\b(?! = )"
)


def spelled_out(text: str) -> str:
    """A kernel's text in which parts of vectors of 16 are named lane by lane: see NOTES."""
    declared: dict[str, tuple[str, str]] = {}

    def spelled(found: re.Match[str]) -> str:
        if found["name"]:
            declared[found["name"]] = found["base"], found["lanes"]
            return found[0]
        base, lanes = declared.get(found["of"], ("", ""))
        if lanes != "16":
            return found[0]
        whole = found["of"]
        wanted = {"hi": "89abcdef", "odd": "13579bdf"}.get(found["part"], found["part"][1:])
        return f"({base}{len(wanted)})({', '.join(f'{whole}.s{lane}' for lane in wanted)})"

    return _DECLARED_OR_PART.sub(spelled, text)


@contextlib.contextmanager
def planned_for(shape: str, without: str = "") -> Iterator[None]:
    """Plan for the simulator as for a discrete device of this code shape, and give its buffers no byte too many.

    Args:
        shape: of the code.
        without: what is left out of every kernel's text, to see that it is missed.
    """
    device = copy.copy(select_device("oclgrind", needs_float64=True))
    device.programs = {}
    device.capabilities = dataclasses.replace(device.capabilities, code_shape=shape, host_memory=False)
    kept, make = [], cl.Buffer

    def buffer(*arguments: Any, **options: Any) -> Any:
        kept.append(make(*arguments, **options))
        return kept[-1]

    enqueue_copy = cl.enqueue_copy

    @functools.cache
    def copy_kernel() -> Any:
        # The simulator falls over what is built before its first queue is there.
        return cl.Program(device.context, _COPY).build().copied

    def copied(queue: Any, target: Any, source: Any, **options: Any) -> Any:
        if not isinstance(target, make) or "region" in options:
            return enqueue_copy(queue, target, source, **options)
        size_bytes, at, to = (options.get(name, 0) for name in ("byte_count", "src_offset", "dst_offset"))
        if not isinstance(source, make):
            if (size_bytes := source.nbytes) == target.size:
                return enqueue_copy(queue, target, source, **options)
            source = buffer(device.context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=source)
        places = source, np.uint64(at), target, np.uint64(to)
        return copy_kernel()(queue, (size_bytes,), None, *places)

    def filled(queue: Any, buffer: Any, pattern: np.ndarray, at: int, size_bytes: int) -> Any:
        return copied(queue, buffer, np.full(size_bytes // pattern.itemsize, pattern[0]), dst_offset=at)

    def text(kernel: Kernel) -> str:
        whole = re.sub(r".*__builtin_prefetch\(.*\n", "", spelled_out(render(kernel)))
        return whole.replace(without, "") if without else whole

    with (
        mock.patch.object(cl, "Buffer", buffer),
        mock.patch.object(cl, "enqueue_copy", copied),
        mock.patch.object(cl, "enqueue_fill_buffer", filled),
        mock.patch.object(OpenCLBackend, "select", return_value=OpenCLBackend(device)),
        mock.patch.object(buffers, "size_class", lambda size: max(size, 1)),
        mock.patch.object(rendered_programs, "rendered", text),
    ):
        yield


def sizes(plan: Plan) -> tuple[int, int, int]:
    """1, a group less one, three groups and one more, of the plan's largest work-groups."""
    group = max(group_of(kernel.ir) for kernel in plan.kernels)
    return 1, group - 1, 3 * group + 1


def group_of(kernel: Kernel) -> int:
    """What a work-group takes side by side: of numbers and rows as they are, of products and attention by its tile."""
    if kernel.work_group == 1:
        return max(kernel.lanes, 16)
    if kernel.work == "matmul":
        return max(kernel.knobs.tile_rows or 0, kernel.knobs.tile_columns or 0, 64)
    return kernel.work_group * (kernel.lanes if kernel.work == "flat" else 1)


def few_items(shape: str) -> Strategy:
    """One batch at a time, since oclgrind's calls are for one thread; of a CPU so few numbers that items are several."""
    return Strategy(depth=1, items_per_work_item=32) if shape == "cpu" else Strategy(depth=1)


def run_family(name: str, shape: str, without: str, only: int | None) -> Iterator[dict[str, Any]]:
    """Run a family at its sizes, or only one, in this process, under oclgrind: what was reported of each."""
    log = Path(os.environ["OCLGRIND_LOG"])
    strategy = few_items(shape)
    with planned_for(shape, without):
        for size in sizes(fc.plan(*FAMILIES[name](50), strategy=strategy)) if only is None else (only,):
            seen = log.stat().st_size if log.exists() else 0
            roots = FAMILIES[name](size)
            wanted = [np.asarray(one) for one in fc.resolve(*roots, fc.constant(0), device="numpy", progress=False)]
            row: dict[str, Any] = {"size": size, "reports": [], "why": ""}
            try:
                plan = fc.plan(*roots, strategy=strategy)
                row["kernels"] = [kernel.ir.family for kernel in plan.kernels]
                values = start(job_of(plan), progress=False, stall_timeout_s=None).wait().values
            except FlowError as error:
                row["why"] = str(error).splitlines()[0]
            else:
                row["reports"] = [
                    f"wrong values of result {at}"
                    for at, (got, want) in enumerate(zip(values, wanted, strict=False))
                    if not close(np.asarray(got), want)
                ]
                if not plan.kernels:
                    row["why"] = "it has no kernel"
            row["reports"] += reports(log.read_text(errors="replace")[seen:] if log.exists() else "")
            yield row


def close(got: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether values are the host's, up to the rounding of their dtype."""
    if got.dtype.kind in "biu":
        return np.array_equal(got, wanted)
    near = 1e-2 if got.dtype.itemsize == 2 else 1e-4
    return np.allclose(got.astype("f8"), wanted.astype("f8"), rtol=near, atol=near, equal_nan=True)


def reports(text: str) -> list[str]:
    """What oclgrind says, once for each kind and line of a kernel."""
    found: dict[str, None] = {}
    for part in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in part.strip().splitlines()]
        if not lines or re.fullmatch(r"\d+ (warning|error)s? generated\.", lines[-1]):
            continue
        # pyopencl asks devices for what other vendors tell, and programs made of binaries for a kernel of this name.
        if "clGetDeviceInfo" in part or "Kernel '_source' not found" in part:
            continue
        if lines[0].startswith("Oclgrind - "):
            found.setdefault(" ".join(lines))
            continue
        place = next((line for line in lines if line.startswith("At line")), "")
        code = lines[lines.index(place) + 1] if place and lines.index(place) + 1 < len(lines) else ""
        found.setdefault(" ".join(filter(None, [re.sub(r"0x[0-9a-f]+", "...", lines[0]), place, code])))
    return list(found)


def observed(name: str, shape: str, folder: str, options: Sequence[str]) -> list[dict[str, Any]]:
    """`run_family` in a process of its own under oclgrind."""
    log = Path(folder, "log")
    log.unlink(missing_ok=True)
    command = ["oclgrind", *OPTIONS, "--log", str(log)]
    command += [sys.executable, "-m", "tests.gpu.oclgrind_runs", "--here", "--shape", shape, name]
    command += options
    environment = {**os.environ, "FLOWCOMPUTE_CACHE": str(Path(folder, "cache"))}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=HANGS_S, env=environment, check=False, errors="replace"
        )
        out, said, ended = done.stdout, done.stderr, f"ended with {done.returncode}" if done.returncode else ""
        if done.returncode == -signal.SIGXCPU:
            ended = f"not at its end after {LIMIT_S} s of the processor"
    except subprocess.TimeoutExpired as error:
        out, said, ended = _text(error.stdout), _text(error.stderr), f"not at its end after {HANGS_S} s"
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    api = [text for text in reports(said) if text.startswith("Oclgrind")]
    if ended or api:
        last = said.strip().splitlines()[-1] if ended and said.strip() else ""
        rows.append({"size": "-", "reports": [*api, *filter(None, [" ".join([ended, last]).strip()])], "why": ""})
    return rows


def _text(said: bytes | str | None) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""


def table(names: Sequence[str], shapes: Sequence[str], options: Sequence[str]) -> int:
    """Print a row for each family, shape and size; how many had reports."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for shape in shapes:
                for row in observed(name, shape, folder, options):
                    outcome = row["why"] and f"cannot run: {row['why']}"
                    if row["reports"]:
                        outcome, bad = f"{len(row['reports'])} reports", bad + 1
                    print(f"{name:<24} {shape:<4} {row['size']:>6}  {outcome or 'clean'}", flush=True)
                    for report in row["reports"]:
                        print(f"    {report}", flush=True)
    return bad


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(prog="scripts/oclgrind", description="kernels under a simulator that watches")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}; all by default")
    parser.add_argument("--shape", choices=SHAPES, help="only this code shape")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--without", default="", help="leave this text out of kernels, to see what it is good for")
    parser.add_argument("--size", type=int, help="only this size")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.families if name not in FAMILIES]:
        parser.error(f"no such family: {', '.join(unknown)}")
    if given.here:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 10))
        for row in run_family(given.families[0], given.shape, given.without, given.size):
            print(json.dumps(row), flush=True)
        return 0
    if shutil.which("oclgrind") is None:
        parser.error("oclgrind is not installed (Debian and Ubuntu: apt-get install oclgrind)")
    options = ["--without", given.without, *([] if given.size is None else ["--size", str(given.size)])]
    bad = table(given.families or list(FAMILIES), [given.shape] if given.shape else SHAPES, options)
    for what, why in NOTES.items():
        print(f"not seen: {what}: {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
