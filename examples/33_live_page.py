"""A live page: a run is shown to a browser of this machine while it works, and to whoever asks for its numbers."""

import json
import threading
import urllib.request

import numpy as np

import flowcompute as fc

data = np.random.default_rng(0).standard_normal((50_000, 16), dtype=np.float32)
y = fc.tanh(fc.source(data, name="readings")).sum(axis=1)

begun, looked = threading.Event(), threading.Event()


def hold(_: fc.Run) -> None:
    """Wait after a batch, so that there is something to look at."""
    begun.set()
    looked.wait(60)


with y.start(page=0, progress=False, memory="2MiB", on_batch=hold) as run:
    assert run.page is not None
    assert begun.wait(60)
    # A browser opens run.page; the same numbers are there as JSON.
    with urllib.request.urlopen(run.page + "snapshot") as answer:
        now = json.load(answer)["now"]
    looked.set()

print(f"{now['state']}: {now['items']:,} of {now['total_items']:,} records, waiting for {now['bottleneck']}")
assert 0 < now["items"] < len(data)
assert run.page is None  # gone with the run
assert np.array_equal(run.value, y.resolve(progress=False))  # watching changes no bit
