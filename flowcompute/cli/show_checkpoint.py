"""Commands that read a frozen job and change nothing: list, verify, show."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterable
from typing import Any

from flowcompute.checkpoint.job import NEVER_CALLED, JobWords, KeptJob, check_drafts, check_sources, find_writes
from flowcompute.checkpoint.store import CheckpointFolder
from flowcompute.cli.overview import COMMANDS
from flowcompute.distributed import read_job
from flowcompute.files import shown
from flowcompute.metrics import Progress
from flowcompute.thawing import FrozenShards, thaw

_DAMAGED = 1


def add_checkpoint(commands: Any) -> None:
    """Add `checkpoint` with its own commands to a parser's sub-parsers."""
    parser = commands.add_parser("checkpoint", help=COMMANDS["checkpoint"])
    own = parser.add_subparsers(metavar="list|verify|show")
    for name, act, text in (
        ("list", _list, "one line for each generation, oldest first"),
        ("verify", _verify, "check every byte, in bounded memory; exit code 1 if something is wrong"),
        ("show", _show, "the job in words: what it reads, computes and writes, and how far it is"),
    ):
        command = own.add_parser(name, help=text)
        command.add_argument("path", metavar="PATH", help="the folder that keeps the job")
        command.set_defaults(act=act)


def _list(options: argparse.Namespace) -> None:
    with CheckpointFolder.peek(options.path) as folder:
        found = folder.generations()
    head = next((one.number for one in found if one.newest), None)
    for one in found:
        size = f"{one.size_bytes:,} bytes"
        state = "ok" if one.problem is None else one.problem
        if one.newest:
            state += ", the newest"
        elif head is not None and one.number > head:
            state += ", never committed"
        print(f"{one.number:>8}  {_when(one.created):<23}  {size:>18}  {state}")


def _verify(options: argparse.Namespace) -> int:
    if read_job(options.path) is not None:
        print(thaw(options.path))
        print("shards whose state or result is damaged are computed again")
        return 0
    with CheckpointFolder.peek(options.path) as folder:
        problems = folder.verify()
        if not problems:
            newest = folder.look()
            job = KeptJob.read(folder.job())
            problems += check_sources(job.graph)
            words = JobWords.read(job.graph)
            problems += check_drafts(newest.body, job.token, words.targets())
            for path in words.files():
                print(f"reads {shown(path)}")
            for write in find_writes(words.targets(), job.token, newest.body):
                print(f"writes {write}")
    for problem in problems:
        print(problem)
    if problems:
        return _DAMAGED
    print(f"{shown(options.path)} is sound: generation {newest.number} of {_when(newest.created)}")
    return 0


def _show(options: argparse.Namespace) -> None:
    print(describe_checkpoint(options.path))


def describe_checkpoint(path: str) -> str:
    """Describe the job in a checkpoint: what it reads, computes and writes, how far it is, and what goes on with it.

    Raises:
        CheckpointError: if there is no checkpoint that can be used.
    """
    frozen = thaw(path)
    if isinstance(frozen, FrozenShards):
        return str(frozen)
    with CheckpointFolder.peek(path) as folder:
        job, body = KeptJob.read(folder.job()), folder.look().body
    words = JobWords.read(job.graph)
    done = frozen.progress
    share = "" if frozen.done else _share(done)
    bound = {name: what for name, what in words.bound().items() if not (frozen.done and what in NEVER_CALLED)}
    given = ", ".join(f"{name!r}: ..." for name in bound)
    thawed = f"fc.thaw({path!r}{f', bind={{{given}}}' if bound else ''})"
    if job.flow is not None:
        goes_on = f"{thawed}.flow()"
    else:
        goes_on = f"{thawed}.resolve()" if bound else f"flowcompute resume {shown(path)}"
    return "\n".join(
        [
            f"{shown(path)}: {frozen.state}{share}, {done.bytes_read:,} bytes read",
            f"  generation {frozen.number} of {_when(frozen.created)}",
            f"  precision {job.precision}, reductions in order {job.order}, made on {job.kind}",
            *_part("reads", words.sources()),
            *_part("computes", words.graph().splitlines()),
            *_part("writes", words.destinations()),
            *_part("files that it makes", map(str, find_writes(words.targets(), job.token, body))),
            *_part("needs to be given again", (f"{name}: {what}" for name, what in bound.items())),
            f"{'gives its results by' if frozen.done else 'goes on with'} {goes_on}",
        ]
    )


def _share(done: Progress) -> str:
    """Return which share of the records in front of it is computed: of the pass that the job is in, where it is known.

    What a pass takes beside others is not kept.
    """
    told = done.current or done
    return f" ({100 * min(told.items / told.total_items, 1):.1f} %)" if told.total_items else ""


def _part(title: str, lines: Iterable[str]) -> list[str]:
    told = [f"  {line}" for line in lines]
    return [title, *told] if told else []


def _when(created: float | None) -> str:
    if created is None:
        return "at an unknown time"
    try:
        return dt.datetime.fromtimestamp(created, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "at an impossible time"
