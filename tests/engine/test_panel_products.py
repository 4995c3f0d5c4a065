"""Folds of products take one thread of BLAS for a panel: how many there are changes no bit, and nobody else's number."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import flowcompute as fc
from flowcompute.engine.accumulators import panel_products
from flowcompute.engine.accumulators.panel_products import multiply_blocks, one_blas_thread
from tests.support.slow import slow_but

SHAPES = [(784, 128, 130), (63, 77, 1000), (300, 5, 9000), (5, 300, 9000), (257, 257, 4100), (1030, 64, 2000)]

PROGRAM = """
import sys, hashlib, numpy as np, flowcompute as fc
from tests.engine.test_panel_products import answers
print(hashlib.sha256(b"".join(one.tobytes() for one in answers())).hexdigest())
"""


def answers() -> list[np.ndarray]:
    made = []
    for mine, others, records in SHAPES:
        rng = np.random.default_rng(mine)
        x, y = (fc.source(rng.standard_normal((records, count), dtype=np.float32)) for count in (mine, others))
        made += [x.T @ y, x.T @ x]
    return [np.asarray(one) for one in fc.resolve(*made, device="numpy", progress=False)]


def number_of_threads() -> set[int]:
    return {each["num_threads"] for each in ThreadpoolController().select(user_api="blas").info()}


@pytest.mark.parametrize("threads", slow_but(["1"], ["1", "2", "7"]))
def test_the_number_of_threads_changes_no_bit(threads: str) -> None:
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=threads)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True, text=True
    )  # fmt: skip
    own = hashlib.sha256(b"".join(one.tobytes() for one in answers())).hexdigest()
    assert done.stdout.strip() == own


@pytest.mark.parametrize(("mine", "others", "records"), SHAPES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_products_are_numpys(mine: int, others: int, records: int, dtype: str) -> None:
    rng = np.random.default_rng(records)
    a, b = (rng.integers(-9, 9, (records, count)).astype(dtype) for count in (mine, others))
    x, y = fc.source(a), fc.source(b)
    found = fc.resolve(x.T @ y, x.T @ x, y.T @ y, device="numpy", progress=False)
    wide = [one.astype("f8") for one in (a, b)]
    for made, (left, right) in zip(found, ((0, 1), (0, 0), (1, 1)), strict=True):
        np.testing.assert_array_equal(made, wide[left].T @ wide[right])


def test_the_number_that_there_was_is_restored() -> None:
    before = number_of_threads()
    entered, leave, found = threading.Event(), threading.Event(), []

    def wait_for_its_turn() -> None:
        entered.set()
        with one_blas_thread():
            found.append((leave.is_set(), number_of_threads()))

    other = threading.Thread(target=wait_for_its_turn)
    with one_blas_thread():
        other.start()
        entered.wait()
        assert number_of_threads() == {1}
        leave.set()
    other.join()
    assert found == [(True, {1})]
    assert number_of_threads() == before
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert number_of_threads() == before


def product_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "flowcompute-product"]


def test_products_of_a_block_share_threads_which_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_products, "own_cores", lambda: [0, 1, 2])
    x, made = np.ones((1, 4096, 256), np.float32), np.empty((1, 256, 256), np.float32)
    with one_blas_thread():
        multiply_blocks(x, x.copy(), made)
        first = product_threads()
        multiply_blocks(x, x, made)
        assert product_threads() == first
        assert len(first) == 2
    assert product_threads() == []
    assert (made == 4096).all()


def test_a_product_that_fails_leaves_no_panel_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_products, "own_cores", lambda: [0, 1])
    x = np.ones((1, 4096, 256), np.float32)
    with pytest.raises(ValueError, match="broadcast"):
        multiply_blocks(x, x.copy(), np.empty((1, 256, 255), np.float32))
    assert product_threads() == []
