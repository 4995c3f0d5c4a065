"""Errors come early, name the element and your line, and say what to do; nothing is left half done."""

import os
import tempfile

import numpy as np

import flowcompute as fc

points = fc.source(np.zeros((10, 3), np.float32), name="points")
try:
    points + np.zeros(4, np.float32)  # shapes are checked where you compose
except fc.SpecError as error:
    print(f"{error}\n")
    assert error.element == "add"
    assert error.site is not None
    assert os.path.basename(error.site.file) == "08_errors.py"
else:
    raise AssertionError("(3,) and (4,) do not fit")


def fragile(batch):
    """Fails on a value that it does not like."""
    if (batch == 700).any():
        raise ValueError("700 is not allowed")
    return batch


with tempfile.TemporaryDirectory() as folder:
    target = os.path.join(folder, "y.npy")
    x = fc.source(np.arange(1000), name="numbers")
    job = fc.host(fragile, x, name="fragile") >> fc.save(target)
    try:
        job.run(strategy=fc.Strategy(batch_bytes=1024), progress=False)
    except fc.RunError as error:  # all errors are fc.FlowError
        print(error)
        assert error.element == "fragile"
        assert error.records is not None
    assert os.listdir(folder) == [], "no half file, no temporary file"
