"""Training: a network is trained from files in bounded memory, stopped in the middle, and goes on to the same bits."""

import os
import tempfile

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(0)
rows = rng.standard_normal((2_000, 20), dtype=np.float32)
labels = np.abs(rows[:, :3]).argmax(axis=1)
first = rng.standard_normal((20, 24), dtype=np.float32) * np.float32(0.3)
second = rng.standard_normal((24, 3), dtype=np.float32) * np.float32(0.2)

with tempfile.TemporaryDirectory() as folder:
    np.save(os.path.join(folder, "rows.npy"), rows)
    np.save(os.path.join(folder, "labels.npy"), labels)
    x, y = (fc.open(os.path.join(folder, f"{name}.npy")) for name in ("rows", "labels"))

    # Parameters are values to begin with; the loss is an ordinary graph over the whole files.
    a, b = fc.parameter(first, name="a"), fc.parameter(second, name="b")
    scores = fc.nn.relu(x @ a) @ b
    loss = fc.nn.cross_entropy(scores, y, reduction="mean")
    trained = fc.train.fit(loss, fc.train.adam(0.01), batch=100, epochs=3, shuffle=7)
    right = trained.apply((fc.argmax(scores, axis=1) == y).astype("float32").mean())
    weights, losses, share = fc.resolve(trained["a"], trained.losses, right)
    print(f"loss {losses[0]:.2f}, then {losses[-10:].mean():.2f}; {share:.0%} right")
    assert losses.shape == (60,)
    assert losses[-10:].mean() < losses[0]

    # Frozen after twenty steps, it goes on to the same bits.
    kept = os.path.join(folder, "kept")
    try:
        trained["a"].run(checkpoint=kept, on_batch=lambda run: run.freeze() if run.progress.items == 20 else None)
    except fc.RunError as stopped:
        print(stopped)
    assert fc.thaw(kept).resolve().tobytes() == weights.tobytes()
