"""Trainings whose kernels mostly move memory: updates of a large matrix, and layers between products.

    python -m benchmarks.training.memory_bound [--device gpu] [--reps 9] [--width 8192] [--records 65536] [JOB ...]

`adam`, `adamw` and `sgd` (with momentum) update one matrix of `--width` squared. `relu`, `gelu`, `dropout` and `norm`
add a bias to `--records` of 1024 numbers, and do what they are named after; `cast` goes through bfloat16. `block` is
two blocks of layer norm, product, bias, gelu, dropout, product and sum, in bfloat16, of an eighth as many records.
`clipped` is the same with gradients clipped by their norm, and `scaled` in float16 with a dynamic loss scale. `layers`
is two layers of the model `large`. See `step_kernels` for what is measured.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.training.models import LARGE, RATE, Model, Sizes, gpt
from benchmarks.training.step_kernels import kernel_rows, torch_rows

WIDTH = 1024
"""Numbers of a record of the element-wise jobs."""


@dataclass(frozen=True)
class Job:
    """A training, and how both update its parameters."""

    model: Model
    optimizer: Any
    torch: Callable[[Any, Any], Any]
    options: Mapping[str, Any]


def _none(*_: Any) -> Any:
    raise NotImplementedError


def _adam(torch: Any, held: Any) -> Any:
    return torch.optim.Adam(held, lr=RATE, fused=True)


def update(width: int) -> Model:
    """One matrix, of which eight records give the gradient."""
    rng = np.random.default_rng(0)
    x, first = rng.standard_normal((8, width), dtype=np.float32), np.zeros((width, width), np.float32)

    def by_flowcompute(p: Mapping[str, Any], x: Any, _: Any) -> Any:
        h = x @ p["w"]
        return fc.mean(fc.vecdot(h, h))

    def by_torch(p: Mapping[str, Any], x: Any, _: Any) -> Any:
        return ((x @ p["w"]) ** 2).sum(-1).mean()

    return Model(1, 8, (x, x[:, 0]), {"w": first}, by_flowcompute, by_torch, _none)


def element_wise(kind: str, records: int) -> Model:
    """A bias, and something element-wise; the loss is the mean of the products with constants."""
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((records, WIDTH), dtype=np.float32), rng.standard_normal(WIDTH, dtype=np.float32)
    first = {"b": np.zeros(WIDTH, np.float32)}

    def by_flowcompute(p: Mapping[str, Any], x: Any, _: Any) -> Any:
        h = x + p["b"]
        made = {
            "relu": fc.nn.relu,
            "gelu": fc.nn.gelu,
            "dropout": lambda one: fc.nn.dropout(one, 0.1, seed=1),
            "norm": fc.nn.layer_norm,
            "cast": lambda one: one.astype("bfloat16").astype("float32"),
        }[kind](h)
        return fc.mean(fc.vecdot(made, fc.constant(t)))

    def by_torch(p: Mapping[str, Any], x: Any, _: Any) -> Any:
        import torch  # noqa: PLC0415 - a peer that may be missing

        nn = torch.nn.functional
        made = {
            "relu": torch.relu,
            "gelu": nn.gelu,
            "dropout": lambda one: nn.dropout(one, 0.1),
            "norm": lambda one: nn.layer_norm(one, (WIDTH,)),
            "cast": lambda one: one.to(torch.bfloat16).float(),
        }[kind](x + p["b"])
        return (made * torch.from_numpy(t).to(x.device)).sum(-1).mean()

    return Model(1, records, (x, x[:, 0]), first, by_flowcompute, by_torch, _none)


def block(records: int, half: str) -> Model:
    """Two blocks of 1024 and 4096 numbers, as layers of transformers have between attention."""
    rng = np.random.default_rng(0)
    x, first = rng.standard_normal((records, WIDTH), dtype=np.float32), {}
    for i in range(2):
        for name, shape in (("w", (WIDTH, 4 * WIDTH)), ("v", (4 * WIDTH, WIDTH))):
            first[f"{i}{name}"] = rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5)
        first |= {f"{i}g": np.ones(WIDTH, "f4"), f"{i}c": np.zeros(WIDTH, "f4")}
        first |= {f"{i}b": np.zeros(4 * WIDTH, "f4"), f"{i}d": np.zeros(WIDTH, "f4")}

    def by_flowcompute(p: Mapping[str, Any], h: Any, _: Any) -> Any:
        def times(one: Any, weights: Any) -> Any:
            return (one.astype(half) @ weights.astype(half)).astype(half)

        for i in range(2):
            n = fc.nn.layer_norm(h) * p[f"{i}g"] + p[f"{i}c"]
            a = fc.nn.gelu(times(n, p[f"{i}w"]).astype("float32") + p[f"{i}b"])
            a = fc.nn.dropout(a, 0.1, seed=2 * i)
            h = h + fc.nn.dropout(times(a, p[f"{i}v"]).astype("float32") + p[f"{i}d"], 0.1, seed=2 * i + 1)
        return fc.mean(fc.vecdot(h, h))

    def by_torch(p: Mapping[str, Any], h: Any, _: Any) -> Any:
        import torch  # noqa: PLC0415 - a peer that may be missing

        nn, dtype = torch.nn.functional, getattr(torch, half)
        for i in range(2):
            n = nn.layer_norm(h, (WIDTH,), p[f"{i}g"], p[f"{i}c"])
            a = nn.gelu((n.to(dtype) @ p[f"{i}w"].to(dtype)).float() + p[f"{i}b"])
            a = nn.dropout(a, 0.1)
            h = h + nn.dropout((a.to(dtype) @ p[f"{i}v"].to(dtype)).float() + p[f"{i}d"], 0.1)
        return (h * h).sum(-1).mean()

    return Model(1, records, (x, x[:, 0]), first, by_flowcompute, by_torch, _none)


def jobs(width: int, records: int, layers: int = 2) -> dict[str, Callable[[], Job]]:
    """Return what makes each job, by name."""
    adam, train = fc.train.adam(RATE), fc.train
    made: dict[str, Callable[[], Job]] = {
        "adam": lambda: Job(update(width), adam, _adam, {}),
        "adamw": lambda: Job(
            update(width), train.adamw(RATE), lambda torch, held: torch.optim.AdamW(held, lr=RATE, fused=True), {}
        ),
        "sgd": lambda: Job(
            update(width),
            train.sgd(RATE, momentum=0.9),
            lambda torch, held: torch.optim.SGD(held, lr=RATE, momentum=0.9, fused=True),
            {},
        ),
    }
    for kind in ("relu", "gelu", "dropout", "norm", "cast"):
        made[kind] = lambda kind=kind: Job(element_wise(kind, records), adam, _adam, {})  # type: ignore[misc]
    made["block"] = lambda: Job(block(records // 8, "bfloat16"), adam, _adam, {})
    made["clipped"] = lambda: Job(block(records // 8, "bfloat16"), adam, _adam, {"clip_norm": 1.0})
    made["scaled"] = lambda: Job(block(records // 8, "float16"), adam, _adam, {"loss_scale": "dynamic"})
    sizes = Sizes(LARGE.letters, LARGE.width, LARGE.heads, layers, LARGE.length, half=True)
    made["layers"] = lambda: Job(gpt(1, 8, sizes), adam, _adam, {})
    return made


def main() -> None:
    """Measure all jobs, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--device", default="gpu")
    for name, default in (("reps", 9), ("width", 8192), ("records", 65536)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    made = jobs(options.width, options.records)
    for name in options.jobs or made:
        job = made[name]()
        kernel_rows(name, job.model, job.optimizer, options.device, options.reps, **job.options)
        if options.device.startswith("gpu") and importlib.util.find_spec("torch") and not job.options:
            import torch  # noqa: PLC0415 - a peer that may be missing

            torch_rows(name, job.model, lambda held, job=job: job.torch(torch, held), options.reps)


if __name__ == "__main__":
    main()
