"""Objects read and written: `python -m benchmarks.formats.objects URL`, beside obstore alone on the same store.

URL is a place in a store, "s3://bucket/place". Objects are put there and removed. Both read by requests of 8 MiB, as
many at a time, and put chunks of 4 MiB one after the other. They take turns; ratios are flowcompute's rate over
obstore's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import obstore

import flowcompute as fc
from benchmarks.measuring.report import environment, say
from flowcompute.objects import ObjectPrefix, parse_url
from flowcompute.objects._obstore import store_of

MIB = 1 << 20
REQUEST = 8 * MIB
CHUNK_RECORDS = 1 << 14
COLUMNS = 64


def seconds(call: Callable[[], Any]) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    """Print a row for reading and one for writing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats.objects", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    x = np.random.default_rng(0).standard_normal((options.mib * MIB // (4 * COLUMNS), COLUMNS), dtype=np.float32)
    url = options.url.rstrip("/")
    place = ObjectPrefix(url)
    store, key = store_of(parse_url(url))._store, parse_url(url).key
    fc.run(fc.source(x) >> fc.save(f"{url}/x.npy"), progress=False)
    size, room = x.nbytes, np.empty(REQUEST // (4 * COLUMNS) * COLUMNS, np.float32).reshape(-1, COLUMNS)

    def get(begin: int) -> None:
        obstore.get_range(store, f"{key}/x.npy", start=begin, end=min(begin + REQUEST // 4, size))

    def read_peer() -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(get, range(0, size, REQUEST // 4)))

    def read_ours() -> None:
        reader = fc.open(f"{url}/x.npy").open()
        try:
            while reader.read(room) == len(room):
                pass
        finally:
            reader.close()

    def write_peer() -> None:
        for start in range(0, len(x), CHUNK_RECORDS):
            obstore.put(store, f"{key}/peer/{start}", x[start : start + CHUNK_RECORDS].tobytes(), use_multipart=False)

    def write_ours() -> None:
        fc.run(fc.source(x) >> fc.save(f"{url}/y.zarr", chunk=CHUNK_RECORDS), progress=False)

    def remove() -> None:
        place.remove([name for name in place.names() if name.startswith(("y.zarr", "peer"))])

    found = environment()
    say(f"{found['date']}, {found['processor']}, load {found['load']:.1f}. {options.mib} MiB.\n")
    print("| | obstore, MiB/s | flowcompute, MiB/s | ratio |\n| --- | --- | --- | --- |")
    for name, peer, ours in (("read", read_peer, read_ours), ("written", write_peer, write_ours)):
        pairs = []
        for _ in range(options.reps):
            pairs.append((seconds(peer), seconds(ours)))
            remove()
        theirs, mine = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"| {name} | {options.mib / theirs:,.0f} | {options.mib / mine:,.0f} | {ratio:.2f} |", flush=True)
    place.remove(["x.npy"])


if __name__ == "__main__":
    main()
