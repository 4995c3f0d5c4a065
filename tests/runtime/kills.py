"""Jobs that are killed at random moments and started again until they end; `python -m tests.runtime.many_kills 1000`."""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import flowcompute as fc
from tests.models.files import write_model

RECORDS = 40_000


def source(folder: Path) -> fc.Element:
    return fc.open(folder / "x.npy")


def mapped(folder: Path, **options: Any) -> list[Any]:
    x = source(folder)
    return [fc.resolve(fc.sqrt(fc.abs(x)) * 2 >> fc.save(folder / "y.npy"), **options)]


def joined(folder: Path, **options: Any) -> list[Any]:
    x = source(folder)
    left, right = x[x[:, 0] > 0], x[:, 1] * 2
    both = left - fc.concat([left[5:], left[:5]])
    return list(fc.resolve(both, right >> fc.save(folder / "y.raw"), right, left.sum(axis=1), **options))


def folded(folder: Path, **options: Any) -> list[Any]:
    x = source(folder)
    centred = x - x.mean(axis=0)
    return list(fc.resolve(centred / x.std(axis=0) >> fc.save(folder / "y.npy"), x.sum(), x.argmax(axis=0), **options))


def scanned(folder: Path, **options: Any) -> list[Any]:
    x = source(folder)
    moving = fc.window(x, 5).mean(axis=1)
    y = fc.cumulative_sum(x, axis=0) >> fc.save(folder / "y.npy")
    return list(fc.resolve(y, moving >> fc.save(folder / "z.npy"), fc.cut(x, 7, tail="drop").max(axis=1), **options))


def fed(folder: Path, *, checkpoint: Path | None = None, throttle: float = 0.0, **_: Any) -> list[Any]:
    x = fc.feed((3,), "float32")
    data = np.load(folder / "x.npy")
    with fc.open_flow(
        x.var(axis=0),
        fc.cumulative_max(x, axis=0).sum(axis=0),
        mode="cumulative",
        device="numpy",
        checkpoint=checkpoint,
    ) as flow:
        while (at := flow.sent["feed"]) < len(data):
            flow.send(data[at : at + 997])
            time.sleep(throttle)
            if checkpoint is not None:
                flow.freeze()
        return list(flow.resolve())


def training(folder: Path, **options: Any) -> list[Any]:
    """Steps in half precision with dropout, measured between them, until a criterion ends them."""
    x = source(folder)
    w = fc.parameter(np.full((3, 4), 0.1, "f4"), name="w")
    v = fc.parameter(np.full(4, 0.2, "f4"), name="v")

    def error(rate: float) -> Any:
        hidden = fc.nn.dropout(fc.tanh(x.astype("float16") @ w.astype("float16")).astype("float32"), rate, seed=3)
        return ((hidden @ v - x[:, 0] * x[:, 1]) ** 2.0).mean()

    trained = fc.train.fit(
        error(0.25),
        fc.train.adam(0.003),
        batch=1500,
        epochs=8,
        shuffle=5,
        clip_norm=1.0,
        loss_scale="dynamic",
        evaluate={"error": error(0.0)},
        every=20,
        stop=fc.train.patience(3, least=1e-4),
    )
    kept = trained >> fc.save(folder / "w.safetensors"), trained.losses >> fc.save(folder / "l.npy")
    return list(fc.resolve(*kept, trained.measures["error"], trained.skipped, trained.apply(error(0.0)), **options))


def stepped(
    folder: Path, *, checkpoint: Path | None = None, throttle: float = 0.0, device: str = "numpy", **_: Any
) -> list[Any]:
    """Steps of a trainer that is saved after each of them, and goes on from what was saved last."""
    x = np.load(folder / "x.npy")
    w = fc.parameter(np.full((3, 64), 0.1, "f4"), name="w")
    v = fc.parameter(np.full(64, 0.2, "f4"), name="v")
    options: dict[str, Any] = {"clip_norm": 1.0, "loss_scale": "dynamic", "device": device}
    with fc.train.Trainer([w, v], fc.train.adam(0.003), **options) as trainer:
        if checkpoint is not None and (folder / "trainer.safetensors").exists():
            trainer.load(folder)
        while trainer.steps < 60:
            records = fc.source(x[trainer.steps * 100 :][:500])
            hidden = fc.nn.dropout(fc.tanh(records @ w), 0.25, seed=3)
            trainer.step(((hidden @ v - records[:, 0] * records[:, 1]) ** 2.0).mean())
            time.sleep(throttle)
            if checkpoint is not None:
                trainer.save(folder)
        return [trainer.save(folder), *trainer.values.values()]


def tokenised(folder: Path, **options: Any) -> list[Any]:
    """Tokens of texts in a file, and a sum for each text."""
    texts = fc.models.texts(folder / "t.txt", longest=4096)
    pairs: Any = fc.models.load(folder / "m.gguf").tokens(texts)
    sums = fc.segment_sum(pairs[:, 0], pairs[:, 1], texts.count())
    return list(fc.resolve(pairs >> fc.save(folder / "y.npy"), sums, **options))


PIPELINES: dict[str, Callable[..., list[Any]]] = {
    "map": mapped,
    "fan-out and join": joined,
    "folds in two passes": folded,
    "scan and window": scanned,
    "feed": fed,
    "training": training,
    "trainer": stepped,
    "tokens": tokenised,
}


def digest(values: list[Any]) -> str:
    """SHA-256 of all results, files included."""
    found = hashlib.sha256()
    for value in values:
        found.update(Path(value).read_bytes() if isinstance(value, str) else np.asarray(value).tobytes())
    return found.hexdigest()


def child(name: str, folder: str, kept: bool, device: str, throttle: float = 0.004) -> None:
    """One attempt, in a process of its own."""
    options: dict[str, Any] = {"device": device, "progress": False, "strategy": fc.Strategy(batch_bytes=1 << 14)}
    if kept:
        options |= {"checkpoint": Path(folder, "ckpt"), "checkpoint_every": 0.01, "throttle": throttle}
    Path(folder, "result").write_text(digest(PIPELINES[name](Path(folder), **options)))


class Trial(NamedTuple):
    """What came of a job that was killed again and again.

    Attributes:
        kills: how often it was.
        equal: whether its results are those of a job that nobody killed.
        left: temporary files that were left behind.
    """

    kills: int
    equal: bool
    left: list[str]


def processes() -> Any:
    """Children come from a server that has imported everything and has no thread and no device."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.runtime.kills"])
    return context


def trial(name: str, kills: int, seed: int, device: str = "numpy") -> Trial:
    """Run a job, killing it so often as long as it lives, and then let it end."""
    draw, context = random.Random(seed), processes()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        data = np.random.default_rng(seed).standard_normal((RECORDS, 3), dtype=np.float32)
        for folder in (first, second):
            np.save(Path(folder, "x.npy"), data)
            lines = (f"the sing {number}" + " and" * (i % 9) for i, number in enumerate(data[:4000, 0]))
            Path(folder, "t.txt").write_text("\n".join(lines))
            write_model(Path(folder, "m.gguf"), block_count=1)
        whole = context.Process(target=child, args=(name, first, False, device))
        whole.start()
        whole.join()
        assert whole.exitcode == 0
        done = 0
        while True:
            # The first has pauses so long that it cannot end before it is killed, however busy the machine is; later
            # ones mostly live long enough to get on.
            process = context.Process(target=child, args=(name, second, True, device, 0.004 if done else 10.0))
            process.start()
            longest = draw.choice((0.05, 0.2, 0.5)) if done else 0.05
            process.join(None if done == kills else longest * draw.random() + 0.02)
            if process.exitcode is not None:
                break
            process.kill()
            process.join()
            done += 1
        assert process.exitcode == 0, f"{name}: seed {seed}, {done} kills"
        equal = Path(first, "result").read_text() == Path(second, "result").read_text()
        return Trial(done, equal, sorted(path.name for path in Path(second).glob(".*")))
