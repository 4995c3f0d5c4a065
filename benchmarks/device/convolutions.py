"""Convolutions over resident images: the kernel alone beside the naive one, a sum of products over windows.

    python -m benchmarks.device.convolutions [--device cpu] [--dtype float32] [--images 24] [--reps 7]

Medians of interleaved launches, no transfers; both must agree. Half formats are measured beside PyTorch where it is
installed: the faster of its two layouts, with cuDNN's own search. Errors are those of one image against float64, of the
sum of |x| |w| that belongs to each number. Where another kernel pads the images, its time counts.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import flowcompute as fc
from benchmarks.device.bandwidth import Resident
from benchmarks.measuring.interleaved import interleaved
from flowcompute.elements.nn.convolution import _naive_convolution
from flowcompute.elements.nn.implicit import implicit_convolution

SHAPES = (
    # what it is; channels, size, output channels, weights, groups, stride
    ("3 x 3", 32, 56, 32, 3, 1, 1),
    ("3 x 3, many channels", 128, 28, 128, 3, 1, 1),
    ("7 x 7, few channels, stride 2", 3, 112, 64, 7, 1, 2),
    ("1 x 1", 128, 28, 128, 1, 1, 1),
    ("depthwise 3 x 3", 64, 56, 64, 3, 64, 1),
    ("depthwise 5 x 5, stride 2", 64, 56, 64, 5, 64, 2),
)

HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
HALF_SHAPES = (
    # channels, size, output channels, weights
    (256, 56, 256, 3),
    (256, 64, 256, 3),
    (256, 32, 256, 3),
    (512, 16, 512, 3),
    (128, 64, 128, 3),
    (64, 56, 64, 3),
    (256, 56, 256, 1),
)


def torch_convolutions(x: np.ndarray, weight: np.ndarray, dtype: str) -> dict[str, Callable[[], Any]]:
    """The convolution by PyTorch on its GPU, in both layouts; none where there is no such GPU."""
    if importlib.util.find_spec("torch") is None:
        return {}
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return {}
    torch.backends.cudnn.benchmark = True
    calls: dict[str, Callable[[], Any]] = {}
    for layout in ("contiguous_format", "channels_last"):
        images, weights = (
            torch.from_numpy(one.astype("f4")).cuda().to(getattr(torch, dtype))
            .contiguous(memory_format=getattr(torch, layout)) for one in (x, weight)
        )  # fmt: skip

        def run(images: Any = images, weights: Any = weights) -> Any:
            made = torch.nn.functional.conv2d(images, weights, padding=weights.shape[-1] // 2)
            torch.cuda.synchronize()
            return made

        calls[f"torch, {layout}"] = run
    return calls


def measure_halves(options: argparse.Namespace) -> None:
    """Rates and errors of convolutions of a half format, interleaved with PyTorch's."""
    rng = np.random.default_rng(1)
    for channels, size, out, kernel in HALF_SHAPES:
        x = rng.standard_normal((options.images, channels, size, size), dtype=np.float32)
        weight = rng.standard_normal((out, channels, kernel, kernel), dtype=np.float32)
        x, weight = (one.astype(HALVES[options.dtype]) for one in (x, weight))
        ours = Resident(fc.nn.conv2d(fc.source(x), fc.constant(weight), padding=kernel // 2), x, options.device)
        calls: dict[str, Callable[[], Any]] = {"ours": ours.run} | torch_convolutions(x, weight, options.dtype)
        seconds = interleaved(calls, options.reps, untimed=2, twice=True)
        (made,) = ours.outputs.values()
        wide = (x[:1].astype("f8"), weight.astype("f8"))
        exact, sizes = (
            fc.nn.conv2d(fc.source(one), fc.constant(other), padding=kernel // 2).resolve(device="cpu", progress=False)
            for one, other in (wide, map(np.abs, wide))
        )
        results = {"ours": made[:1]}
        results |= {name: run()[:1].float().cpu().numpy() for name, run in calls.items() if name != "ours"}
        best = min(statistics.median(times) for name, times in seconds.items())
        for name, times in seconds.items():
            taken = statistics.median(times)
            rate = 2e-12 * options.images * exact.size * weight[0].size / taken
            error = (np.abs(results[name].astype("f8") - exact) / sizes).max()
            print(
                f"{channels} channels, {size} x {size}, {out} of {kernel} x {kernel}  {name:24} {1e3 * taken:7.3f} ms "
                f"{rate:7.1f} TFLOP/s, {best / taken:4.2f} of the best, error {error:.1e} of |x| |w|",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", *HALVES])
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--reps", type=int, default=7)
    options = parser.parse_args()
    if options.dtype in HALVES:
        measure_halves(options)
        return
    rng = np.random.default_rng(1)
    for name, channels, size, out, kernel, groups, stride in SHAPES:
        x = rng.standard_normal((options.images, channels, size, size), dtype=np.float32)
        weight = rng.standard_normal((out, channels // groups, kernel, kernel), dtype=np.float32)
        how: Any = (fc.source(x), fc.constant(weight), None, (stride, stride), (1, 1), groups)
        made = {"ours": implicit_convolution("conv2d", *how), "naive": _naive_convolution("conv2d", *how)}
        values = [one.resolve(device=options.device, progress=False) for one in made.values()]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-3, atol=1e-3)
        # Groups become channels by another shape, which takes no time.
        kernels = {key: one.inputs[0] if one.op.name == "reshape" else one for key, one in made.items()}
        residents = {key: Resident(one, x, options.device) for key, one in kernels.items()}
        seconds = interleaved({key: one.run for key, one in residents.items()}, options.reps, untimed=1)
        ours, naive = (statistics.median(seconds[key]) for key in ("ours", "naive"))
        rate = 2e-9 * values[0].size * weight[0].size / ours
        print(f"{name:30} {1e3 * ours:8.2f} ms  {rate:8.1f} GFLOP/s  naive takes {naive / ours:5.1f} times as long")


if __name__ == "__main__":
    main()
