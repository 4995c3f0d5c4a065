"""Results handed to a function, and results dropped."""

import os

import numpy as np
import pytest

from flowcompute.errors import RunError, SpecError
from flowcompute.sinks.callback_sink import CallbackWriter, callback
from flowcompute.sinks.discard_sink import discard
from flowcompute.spec import FLOAT32, Spec, Stream


def test_each_batch_is_the_functions_own() -> None:
    seen: list[np.ndarray] = []
    writer = callback(seen.append).open(Spec(FLOAT32, (), Stream(None)))
    batch = np.zeros(2, np.float32)
    for k in range(3):
        batch[:] = k
        writer.write(batch, 2 * k)
    assert [array.tolist() for array in seen] == [[0, 0], [1, 1], [2, 2]]
    seen[0][:] = 9
    assert batch.tolist() == [2, 2]
    assert writer.commit() is None


def test_a_number_comes_as_a_scalar() -> None:
    seen: list[object] = []
    callback(seen.append).open(Spec(FLOAT32, ())).write(np.array(2.5, np.float32), 0)
    assert seen == [2.5]
    assert isinstance(seen[0], np.float32)


@pytest.mark.parametrize("stream", [Stream(9), None])
def test_an_exception_is_a_run_error_with_its_records(stream: Stream | None) -> None:
    def explode(array: np.ndarray) -> None:
        raise ValueError("boom")

    writer = callback(explode, name="plot").open(Spec(FLOAT32, (), stream))
    assert isinstance(writer, CallbackWriter)
    with pytest.raises(RunError) as caught:
        writer.write(np.zeros(3, np.float32), 4)
    for word in ("plot", "ValueError", "boom", os.path.basename(__file__)):
        assert word in str(caught.value)
    assert caught.value.records == (None if stream is None else (4, 7))
    assert isinstance(caught.value.__cause__, ValueError)
    writer.element = "plot_2"
    with pytest.raises(RunError, match="plot_2"):
        writer.write(np.zeros(3, np.float32), 4)


def test_an_interrupt_passes_through() -> None:
    def interrupt(array: np.ndarray) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        callback(interrupt).open(Spec(FLOAT32, (), Stream(3))).write(np.zeros(3, np.float32), 0)


async def _later(array: np.ndarray) -> None:
    return None


@pytest.mark.parametrize("function", [None, 3, _later])
def test_what_is_no_plain_function_is_refused(function: object) -> None:
    with pytest.raises(SpecError) as caught:
        callback(function)  # type: ignore[arg-type]
    assert os.path.basename(__file__) in str(caught.value)


def test_discarded_results_are_none() -> None:
    writer = discard(name="nowhere").open(Spec(FLOAT32, (), Stream(3)))
    writer.write(np.zeros(3, np.float32), 0)
    assert writer.buffer(0, 3) is None
    assert writer.commit() is None
    writer.abort()
    writer.abort()
