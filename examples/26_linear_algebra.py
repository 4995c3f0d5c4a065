"""Linear algebra: a regression and principal components of a file, each one graph from the rows to the answer."""

import os
import tempfile

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(26)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "rows.npy")
    features = rng.standard_normal((50_000, 4)) @ rng.standard_normal((4, 4))
    np.save(path, np.column_stack([features, features @ [1, -2, 0.5, 3] + rng.standard_normal(50_000) / 10]))

    rows = fc.open(path)
    x, y = rows[:, :-1], rows[:, -1]

    # Both products are folds. LAPACK solves what they give, once, when the last record has come.
    weights = fc.linalg.solve(x.T @ x, x.T @ y)
    error = ((y - x @ weights) ** 2).mean()  # meets its own fold, so the file is read twice
    found, mean_square = fc.resolve(weights, error, progress=False)
    print(f"weights {found.round(3)}, mean square error {mean_square:.4f}")
    np.testing.assert_allclose(found, [1, -2, 0.5, 3], atol=0.01)

    # Principal components: eigenvectors of the covariance. A factorisation is computed once for all of its results.
    variances, directions = fc.linalg.eigh(fc.cov(x))
    scores = (x - x.mean(axis=0)) @ fc.flip(directions, axis=1)[:, :2]
    spread, leading = fc.resolve(variances, scores, progress=False)
    print(f"the first two of four components hold {spread[-2:].sum() / spread.sum():.1%} of the variance")
    np.testing.assert_allclose(leading.var(axis=0, ddof=1), spread[::-1][:2])

    # A matrix that LAPACK refuses is an error that names the element and its line.
    try:
        fc.linalg.inv(x.T @ x * 0).resolve(progress=False)
    except fc.RunError as refused:
        print(refused)
        assert "Singular matrix" in str(refused)
