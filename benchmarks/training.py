"""Steps of a training beside torch and jax, where these are installed, and NumPy by hand.

    python -m benchmarks.training [--device cpu] [--steps 300] [--reps 3] [--batch 128]

An MLP of 784, 128 and 10 numbers learns classes of drawn images by Adam, in float32. All peers begin with the same
parameters and take the same records in the same order. Losses must agree: the first to 1e-4, the last to 1e-2. A
repetition of `fit` composes, plans and runs all steps; of the others it runs a loop of Python. Repetitions alternate.
Each comes after one that does not count: threads of the peer before wait busily for a while. Printed are the best wall
seconds, and the processor's of the same repetition.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import flowcompute as fc

PIXELS, HIDDEN, CLASSES, RATE = 784, 128, 10, 1e-3

Train = Callable[[], np.ndarray]
"""Takes all steps, and returns their losses."""


class Problem:
    """Records in the order of the steps, and what parameters begin with."""

    def __init__(self, steps: int, batch: int) -> None:
        rng = np.random.default_rng(0)
        self.steps, self.batch = steps, batch
        self.labels = rng.integers(0, CLASSES, steps * batch)
        means = rng.standard_normal((CLASSES, PIXELS), dtype=np.float32)
        noise = rng.standard_normal((steps * batch, PIXELS), dtype=np.float32)
        self.images = means[self.labels] * np.float32(0.15) + noise
        shapes = {"a": (PIXELS, HIDDEN), "b": (HIDDEN,), "c": (HIDDEN, CLASSES), "d": (CLASSES,)}
        self.first = {
            name: (rng.standard_normal(shape) * (2 / shape[0]) ** 0.5 if len(shape) > 1 else np.zeros(shape)).astype(
                "f4"
            )
            for name, shape in shapes.items()
        }

    def part(self, step: int) -> slice:
        return slice(step * self.batch, (step + 1) * self.batch)


def parameters(problem: Problem) -> dict[str, Any]:
    return {name: fc.parameter(value, name=name) for name, value in problem.first.items()}


def loss(p: dict[str, Any], x: Any, y: Any) -> Any:
    return fc.nn.cross_entropy(fc.nn.relu(x @ p["a"] + p["b"]) @ p["c"] + p["d"], y, reduction="mean")


def by_fit(problem: Problem, device: str) -> Train:
    def train() -> np.ndarray:
        error = loss(parameters(problem), fc.source(problem.images), fc.source(problem.labels))
        trained = fc.train.fit(error, fc.train.adam(RATE), batch=problem.batch)
        return trained.losses.resolve(device=device, progress=False)

    return train


def by_trainer(problem: Problem, device: str) -> Train:
    def train() -> np.ndarray:
        p = parameters(problem)
        with fc.train.Trainer([*p.values()], fc.train.adam(RATE), device=device) as trainer:
            parts = map(problem.part, range(problem.steps))
            steps = (loss(p, fc.source(problem.images[one]), fc.source(problem.labels[one])) for one in parts)
            return np.array([trainer.step(one) for one in steps])

    return train


def by_hand(problem: Problem) -> Train:
    def train() -> np.ndarray:
        p = {name: value.copy() for name, value in problem.first.items()}
        m, v = ({name: np.zeros_like(value) for name, value in p.items()} for _ in range(2))
        losses = []
        for step in range(problem.steps):
            x, y = problem.images[problem.part(step)], problem.labels[problem.part(step)]
            h = np.maximum(x @ p["a"] + p["b"], 0)
            z = h @ p["c"] + p["d"]
            z -= z.max(1, keepdims=True)
            powers = np.exp(z)
            total = powers.sum(1, keepdims=True)
            losses.append((np.log(total[:, 0]) - z[range(len(y)), y]).mean())
            g = powers / total
            g[range(len(y)), y] -= 1
            g /= np.float32(len(y))
            back = (g @ p["c"].T) * (h > 0)
            found = {"a": x.T @ back, "b": back.sum(0), "c": h.T @ g, "d": g.sum(0)}
            for name, gradient in found.items():
                m[name] += np.float32(0.1) * (gradient - m[name])
                v[name] += np.float32(0.001) * (gradient * gradient - v[name])
                unbiased = np.sqrt(v[name] / np.float32(1 - 0.999 ** (step + 1))) + np.float32(1e-8)
                p[name] -= np.float32(RATE / (1 - 0.9 ** (step + 1))) * m[name] / unbiased
        return np.array(losses)

    return train


def by_torch(problem: Problem) -> Train:
    import torch  # noqa: PLC0415 - a peer that may be missing

    def train() -> np.ndarray:
        p = {name: torch.tensor(value, requires_grad=True) for name, value in problem.first.items()}
        adam = torch.optim.Adam([*p.values()], lr=RATE)
        images, labels = torch.from_numpy(problem.images), torch.from_numpy(problem.labels)
        losses = []
        for step in range(problem.steps):
            one = problem.part(step)
            z = torch.relu(images[one] @ p["a"] + p["b"]) @ p["c"] + p["d"]
            error = torch.nn.functional.cross_entropy(z, labels[one])
            adam.zero_grad()
            error.backward()
            adam.step()
            losses.append(float(error))
        return np.array(losses)

    return train


def by_jax(problem: Problem) -> Train:
    import jax  # noqa: PLC0415 - a peer that may be missing

    def error(p: dict[str, Any], x: Any, y: Any) -> Any:
        z = jax.numpy.maximum(x @ p["a"] + p["b"], 0) @ p["c"] + p["d"]
        return (jax.nn.logsumexp(z, axis=1) - jax.numpy.take_along_axis(z, y[:, None], axis=1)[:, 0]).mean()

    @jax.jit
    def step(state: tuple[Any, Any, Any], x: Any, y: Any, number: Any) -> tuple[tuple[Any, Any, Any], Any]:
        p, m, v = state
        value, g = jax.value_and_grad(error)(p, x, y)
        m = {name: 0.9 * m[name] + 0.1 * g[name] for name in p}
        v = {name: 0.999 * v[name] + 0.001 * g[name] * g[name] for name in p}
        roots = {name: jax.numpy.sqrt(v[name] / (1 - 0.999**number)) + 1e-8 for name in p}
        return ({name: p[name] - RATE * m[name] / (1 - 0.9**number) / roots[name] for name in p}, m, v), value

    def train() -> np.ndarray:
        zeros = {name: np.zeros_like(value) for name, value in problem.first.items()}
        state, losses = (problem.first, zeros, zeros), []
        for number in range(problem.steps):
            one = problem.part(number)
            state, value = step(state, problem.images[one], problem.labels[one], number + 1.0)
            losses.append(float(value))
        return np.array(losses)

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    options = parser.parse_args()
    problem = Problem(options.steps, options.batch)
    peers: dict[str, Train] = {
        "NumPy by hand": by_hand(problem),
        "fit": by_fit(problem, options.device),
        "Trainer": by_trainer(problem, options.device),
    }
    for name, made in (("torch", by_torch), ("jax", by_jax)):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed")
        else:
            peers[name] = made(problem)
    best: dict[str, tuple[float, float]] = {}
    losses: dict[str, np.ndarray] = {}
    for _ in range(options.reps):
        for name, train in peers.items():
            train()
            began_s, busy_s = time.perf_counter(), time.process_time()
            losses[name] = train()
            took = time.perf_counter() - began_s, time.process_time() - busy_s
            best[name] = min(best.get(name, took), took)
    expected = losses["NumPy by hand"]
    print(f"{'':16}{'first loss':>12}{'last loss':>12}{'steps/s':>10}{'ms a step':>11}{'CPU ms':>9}")
    for name, (wall_s, busy_s) in best.items():
        np.testing.assert_allclose(losses[name][0], expected[0], rtol=1e-4, err_msg=name)
        np.testing.assert_allclose(losses[name][-10:].mean(), expected[-10:].mean(), rtol=1e-2, atol=1e-3, err_msg=name)
        ms, cpu_ms = (1e3 * seconds / problem.steps for seconds in (wall_s, busy_s))
        figures = f"{losses[name][0]:12.4f}{losses[name][-10:].mean():12.4f}"
        print(f"{name:16}{figures}{1e3 / ms:10.0f}{ms:11.2f}{cpu_ms:9.2f}")


if __name__ == "__main__":
    main()
