"""A job described by format 1 stays a job: the file in golden_jobs/ is never written again.

It was made once by `FLOWCOMPUTE_GOLDEN=write`, of `golden_job`. Where an operation gets other attributes or another name,
what was kept must still be understood: that is what this test is for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import flowcompute as fc
from flowcompute.checkpoint.job.describe import describe_job
from flowcompute.checkpoint.job.difference import differences
from flowcompute.checkpoint.job.rebuild import rebuild_job
from flowcompute.checkpoint.store.decode import decode
from flowcompute.checkpoint.store.encode import encode
from flowcompute.graph.graph import build_graph
from tests.checkpoint.kept import Store, described

GOLDEN = Path(__file__).parent / "golden_jobs" / "format-1.msgpack"


@fc.kernel
def decayed(x: Any, rate: Any) -> Any:
    y = x
    for i in range(3):
        y = y * rate if y > i else y - rate
    while y > 100.0:
        y /= 2
    return y, int(y) % 7


def golden_job() -> list[Any]:
    x = fc.source(np.arange(-12.0, 12.0, dtype="f4").reshape(8, 3), name="x")
    y, n = decayed(x, 0.5)
    w = fc.constant(np.arange(6, dtype="f4").reshape(3, 2), name="w")
    return [
        fc.cumulative_sum(fc.nn.sigmoid(x) * 2, axis=0) >> fc.save("/data/y.npy", name="saved"),
        (x - x.mean(axis=0)) * 3 >> fc.to_array(),
        x.sum() >> fc.to_array(),
        (y @ w) >> fc.save("/data/z.raw", durable=False),
        fc.window(n, 3, pad="edge").max(axis=1) >> fc.to_array(),
        x[1::2, ::-1].var(axis=0, correction=1) >> fc.to_array(),
        fc.cut(fc.flatten(x), 5, tail="pad", fill=np.nan).astype("f2") >> fc.to_array(),
        fc.where(x > 0, x, fc.random.normal(8, shape=(3,), seed=7)) >> fc.to_array(),
        *(one >> fc.to_array() for one in fc.top_k(x[:, 0], 2)),
        fc.quantile(x[x[:, 0] > 0][:, 0], [0.25, 0.75]) >> fc.to_array(),
        fc.nn.softmax(x).sum(axis=1) >> fc.discard(name="dropped"),
    ]


def write() -> None:
    store = Store()
    data = described(*golden_job(), store=store)
    assert not store.arrays
    for place, node in enumerate(data["nodes"]):
        node["site"] = ["job.py", place]
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_bytes(encode(data).data)


if os.environ.get("FLOWCOMPUTE_GOLDEN") == "write" and not GOLDEN.exists():
    write()


def test_a_job_of_format_1_is_still_understood() -> None:
    data: Any = decode(GOLDEN.read_bytes(), lambda _: np.empty(0)).value
    roots = rebuild_job(data, Store().get)
    nodes = build_graph(roots).nodes
    assert [node.name for node in nodes] == [one["name"] for one in data["nodes"]]
    assert [node.element.site for node in nodes] == [("job.py", place) for place in range(len(nodes))]
    assert describe_job(build_graph(roots), Store().put) == {**data, "python": described(*roots)["python"]}


def test_the_same_program_is_still_the_same_job() -> None:
    data: Any = decode(GOLDEN.read_bytes(), lambda _: np.empty(0)).value
    assert differences(data, described(*golden_job())) == []


def test_its_results_are_still_the_same() -> None:
    data: Any = decode(GOLDEN.read_bytes(), lambda _: np.empty(0)).value
    pairs = []
    for roots in (rebuild_job(data, Store().get), golden_job()):
        kept = [root for root in roots if type(root) is type(fc.to_array())]
        pairs.append(fc.resolve(*kept, device="numpy", progress=False))
    assert [one.tobytes() for one in pairs[0]] == [one.tobytes() for one in pairs[1]]
