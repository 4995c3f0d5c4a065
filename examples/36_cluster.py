"""One job on a cluster: workers compute it in shards, and the file has the bytes that one machine makes."""

import importlib.util
import os
import tempfile
from pathlib import Path

import numpy as np

import flowcompute as fc

if importlib.util.find_spec("distributed") is None:
    print("left out: pip install 'flowcompute[cluster]'")
    raise SystemExit
import dask
from distributed import Client


def job(folder: str, name: str) -> tuple[fc.Element, fc.Element]:
    x = fc.open(os.path.join(folder, "x.npy"))
    return (x - x.mean(axis=0)) / x.std(axis=0) >> fc.save(os.path.join(folder, name)), x[:, 0].argmax()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        x = np.random.default_rng(8).standard_normal((200_000, 8), dtype=np.float32)
        np.save(os.path.join(folder, "x.npy"), x)
        _, best = fc.run(*job(folder, "one.npy"), progress=False).values

        # Here the workers are threads. On SLURM, Kubernetes or by SSH only this line differs: see docs/cluster.md.
        dask.config.set(temporary_directory=folder)
        with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
            kept = os.path.join(folder, "kept")  # run it again after a kill, and it goes on from there
            run = fc.run(*job(folder, "many.npy"), cluster=client, shards=4, memory="16MiB", checkpoint=kept)
        print(f"{run.shards.count} shards of all stages, {run.shards.items} records read")

        one, many = (Path(folder, name).read_bytes() for name in ("one.npy", "many.npy"))
        assert one == many and run.values[1] == best
        print(fc.thaw(kept))
