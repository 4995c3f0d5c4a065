"""The plan knows its bytes before anything runs; what cannot fit is refused with the number."""

import os
import tempfile

import numpy as np

import flowcompute as fc

with tempfile.TemporaryDirectory() as folder:
    source = os.path.join(folder, "x.npy")
    np.save(source, np.random.default_rng(7).standard_normal((40_000, 100), dtype=np.float32))
    x = fc.open(source, name="x")
    norm = fc.sqrt((x * x).sum(axis=1, keepdims=True))
    job = (x / norm) >> fc.save(os.path.join(folder, "unit.npy"))

    plan = job.plan(memory="2MiB")
    print(plan)  # passes, kernels, batch size, every byte, and the reason for each decision
    assert len(plan.kernels) == 1, "the row sum is fused with what feeds it and with what uses it"
    assert plan.memory.host_bytes <= 2 << 20
    assert sum(size for _, size in plan.memory.items) == plan.memory.host_bytes
    assert job.plan(memory="1MiB").batch_items < plan.batch_items, "a smaller budget, smaller batches"

    print("\nthe first lines of the kernel:", *plan.kernels[0].source.splitlines()[-40:-36], sep="\n  ")
    with open(os.path.join(folder, "plan.svg"), "w") as file:
        file.write(plan.svg())  # a picture of the graph, kernels in colour

    try:
        (x * 2).plan(memory="1MiB")  # a result in memory is larger than the budget
    except fc.PlanError as error:
        print(f"\nrefused: {error}")
    else:
        raise AssertionError("16 MB do not fit into 1 MiB")
