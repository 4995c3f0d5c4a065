"""An ONNX model over a source tree: magika tells the kind of each file by its bytes, as a stream of files."""

import collections
import glob
import importlib.util
import json
import os

import numpy as np

import flowcompute as fc

# The wheel holds the model; the package itself is never imported.
found = importlib.util.find_spec("magika")
if found is None or not found.submodule_search_locations:
    print("left out: the model is not here; pip install --no-deps magika==1.0.3")
    raise SystemExit
folder = os.path.join(found.submodule_search_locations[0], "models", "standard_v3_3")
with open(os.path.join(folder, "config.min.json")) as f:
    kinds = json.load(f)["target_labels_space"]


def both_ends(path):
    """The first and the last 1024 bytes that are no blanks; 256 stands for none."""
    with open(path, "rb") as f:
        data = f.read()
    item = np.full(2048, 256, np.int32)
    head, tail = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
    item[: len(head)] = np.frombuffer(head, np.uint8)
    item[2048 - len(tail) :] = np.frombuffer(tail, np.uint8)
    return item


files = sorted(glob.glob(os.path.join(os.path.dirname(fc.__file__), "onnx", "**", "*.py"), recursive=True))
model = fc.onnx.load(os.path.join(folder, "model.onnx"))
scores = model(fc.iterate(map(both_ends, files), shape=(2048,), dtype="int32", items=True))
said = [kinds[place] for place in fc.argmax(scores, axis=1).resolve(progress=False)]
print(collections.Counter(said))
assert len(said) == len(files) and said.count("python") >= 0.9 * len(files)
