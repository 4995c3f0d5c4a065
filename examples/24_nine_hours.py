"""A nine-hour job in miniature: `python 24_nine_hours.py FOLDER` takes a minute. Kill it, and start it again.

Ctrl-C, `kill`, `kill -9`, a pulled plug: the same command goes on. So does `flowcompute resume FOLDER/kept`, without
this program; `flowcompute checkpoint show FOLDER/kept` says how far it is. Without FOLDER it kills itself, and checks.
"""

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np

import flowcompute as fc


def work(folder, **options):
    """A long walk in standard units: generated, summed up, and made twice, since its mean comes after its end."""
    walk = fc.cumulative_sum(fc.random.normal(1_000_000, seed=24))
    job = (walk - walk.mean()) / walk.std() >> fc.save(os.path.join(folder, "walk.npy"))
    kept = os.path.join(folder, "kept")
    return fc.run(job, walk.max(), checkpoint=kept, checkpoint_every=0.2, memory="256KiB", **options)


if len(sys.argv) == 2:
    print(work(sys.argv[1], throttle=0.6, progress=True))
elif len(sys.argv) == 3:  # dies after so many batches: nothing is flushed, closed or renamed
    left = iter(range(1, int(sys.argv[2])))
    work(sys.argv[1], throttle=0.1, on_batch=lambda _: next(left, 0) or os.kill(os.getpid(), signal.SIGKILL))
else:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        for batches in (9, 6):
            subprocess.run([sys.executable, __file__, folder, str(batches)], check=False)
            print(f"killed; {fc.thaw(os.path.join(folder, 'kept'))}; {sorted(os.listdir(folder))}")
        path, highest = work(folder, progress=False).values
        assert work(other, progress=False).values[1] == highest  # by one that nobody has killed
        np.testing.assert_array_equal(np.load(path), np.load(os.path.join(other, "walk.npy")))
        print(f"done: {path}, at most {highest:.3f} from where it began")
