"""Steps of trainings beside torch and jax, where these are installed.

    python -m benchmarks.training [mlp|cnn|gpt|large|gradient|step ...] [--device cpu] [--steps N] [--reps 5]
                                  [--compiled MODE ...]

`mlp`, `cnn` and `gpt` learn drawn data by Adam, in float32. `large` is a GPT of 12 layers of 1024 in bfloat16, which
is left out unless it is named. All peers begin with the same parameters and take the same records in the same order.
First losses must agree to 1e-5 (bfloat16 to 1e-3), the means of the last ten to 1 %. A step is the slope between
trainings of all steps and of a quarter of them. What is composed and planned once is no part of it, as what peers have
compiled is none; the column "begin" has it. Modes of `torch.compile`, such as "default" and, with CUDA graphs,
"reduce-overhead", are further peers. `gradient` is the slope of a logistic regression over a whole file; see
`full_batch`. `step` is what a step of `Trainer` costs beside its kernels; see `trainer_step`.

Repetitions alternate; see `timing`. Printed are medians by the wall and by the processor, with the spread by the wall.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from benchmarks.training.full_batch import gradient_rows
from benchmarks.training.loops import Train, by_fit, by_jax, by_torch, by_trainer
from benchmarks.training.mlp_by_hand import by_hand
from benchmarks.training.models import MODELS, Model
from benchmarks.training.timing import Seconds, Slope, measured
from benchmarks.training.trainer_step import step_row

STEPS = {"mlp": 600, "cnn": 40, "gpt": 12, "large": 40}

SHORTER = 4
"""Steps of the longer training for each of the shorter one."""

USUAL = ("mlp", "cnn", "gpt", "gradient", "step")


@cache
def _installed(name: str) -> bool:
    found = importlib.util.find_spec(name) is not None
    if not found:
        print(f"{name} is not installed")
    return found


def _peers(name: str, model: Model, device: str, compiled: Sequence[str]) -> dict[str, Train]:
    peers: dict[str, Train] = {"fit": by_fit(model, device), "Trainer": by_trainer(model, device)}
    if name == "mlp":
        peers["NumPy by hand"] = by_hand(model)
    if _installed("torch"):
        peers["torch"] = by_torch(model, device)
        peers |= {f"torch, {mode}": by_torch(model, device, mode) for mode in compiled}
    # On GPUs jax rounds factors to fewer bits by default.
    return peers | ({"jax": by_jax(model)} if device == "cpu" and _installed("jax") else {})


def steps_of(name: str, model: Model, device: str, reps: int, compiled: Sequence[str] = ()) -> None:
    few = max(model.steps // SHORTER, 1)
    lengths = {"short": _peers(name, model.of_steps(few), device, compiled), "": _peers(name, model, device, compiled)}
    pairs = {f"{peer} {length}": each[peer] for peer in lengths[""] for length, each in lengths.items()}

    def told(so_far: Mapping[str, Seconds]) -> None:
        slopes = {
            peer: Slope.of(so_far[f"{peer} short"], so_far[f"{peer} "], (few, model.steps)) for peer in lengths[""]
        }
        print(f"{name}, ms a step:", {peer: round(1e3 * one.wall_s, 2) for peer, one in slopes.items()}, flush=True)

    seconds, found = measured(pairs, reps, told)
    losses = {peer: found[f"{peer} "] for peer in lengths[""]}
    first, last = losses["fit"][0], losses["fit"][-10:].mean()
    print(f"{name}: {model.steps} steps of {model.batch}; loss {first:.5f}, then {last:.5f}")
    print(f"{'':22}{'steps/s':>10}{'ms a step':>11}{'spread':>16}{'CPU ms':>9}{'begin ms':>10}{'off at first':>14}")
    for peer in losses:
        np.testing.assert_allclose(losses[peer][0], first, rtol=1e-3 if name == "large" else 1e-5, err_msg=peer)
        np.testing.assert_allclose(losses[peer][-10:].mean(), last, rtol=1e-2, err_msg=peer)
        one = Slope.of(seconds[f"{peer} short"], seconds[f"{peer} "], (few, model.steps))
        wall, busy, least, most, begin = (
            1e3 * each for each in (one.wall_s, one.busy_s, one.least_s, one.most_s, one.begin_s)
        )
        off, spread = abs(losses[peer][0] / first - 1), f"{least:.2f} to {most:.2f}"
        print(f"{peer:22}{1e3 / wall:10.1f}{wall:11.2f}{spread:>16}{busy:9.2f}{begin:10.1f}{off:14.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=[*USUAL], choices=[*USUAL, "large"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--compiled", nargs="*", default=[], help="modes of torch.compile")
    parser.add_argument("--mib", type=int, default=256, help="of the file of `gradient`")
    options = parser.parse_args()
    for name in options.rows:
        if name == "gradient":
            gradient_rows(options.mib, options.device, options.reps, torch=_installed("torch"))
        elif name == "step":
            step_row("mlp", MODELS["mlp"](options.steps or 40), options.device)
            step_row("cnn", MODELS["cnn"](options.steps or 12), options.device)
        else:
            steps_of(name, MODELS[name](options.steps or STEPS[name]), options.device, options.reps, options.compiled)


if __name__ == "__main__":
    main()
