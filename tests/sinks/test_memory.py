"""Results in memory: one allocation where the length is known, a bound where it is not."""

import numpy as np
import pytest

from flowcompute.errors import RunError
from flowcompute.sinks.array_sink import MemoryWriter, to_array
from flowcompute.spec import BFLOAT16, BOOL, FLOAT32, Spec, Stream


def test_a_number_is_a_numpy_scalar() -> None:
    for dtype in (FLOAT32, BOOL, BFLOAT16):
        writer = to_array().open(Spec(dtype, ()))
        writer.write(np.array(1, dtype), 0)
        value = writer.commit()
        assert isinstance(value, np.generic)
        assert value.dtype == dtype
        assert value == 1


def test_a_known_length_is_one_allocation_filled_in_place() -> None:
    writer = to_array().open(Spec(FLOAT32, (3,), Stream(20)))
    first, second = writer.buffer(0, 12), writer.buffer(12, 20)
    assert first is not None
    assert second is not None
    first[:], second[:] = 1, 2
    writer.write(first, 0)
    writer.write(second, 12)
    result = writer.commit()
    assert np.shares_memory(result, first)
    assert np.shares_memory(result, second)
    assert (result[:12] == 1).all()
    assert (result[12:] == 2).all()
    assert result.flags.writeable
    assert result.flags.owndata


def test_a_buffer_of_another_place_is_copied() -> None:
    writer = to_array().open(Spec(FLOAT32, (), Stream(4)))
    buffer = writer.buffer(0, 2)
    assert buffer is not None
    buffer[:] = [1, 2]
    writer.write(buffer, 2)
    writer.write(np.array([7, 8], np.float32), 0)
    np.testing.assert_array_equal(writer.commit(), [7, 8, 1, 2])


def test_a_buffer_seen_in_another_order_is_copied() -> None:
    writer = to_array().open(Spec(FLOAT32, (2, 2), Stream(1)))
    buffer = writer.buffer(0, 1)
    assert buffer is not None
    buffer[0] = [[1, 2], [3, 4]]
    writer.write(buffer.transpose(0, 2, 1), 0)
    np.testing.assert_array_equal(writer.commit(), [[[1, 3], [2, 4]]])


def test_an_unknown_length_and_a_resident_have_no_buffer() -> None:
    assert to_array().open(Spec(FLOAT32, (3,), Stream(None))).buffer(0, 5) is None
    assert to_array().open(Spec(FLOAT32, (3,))).buffer(0, 5) is None


def test_a_result_that_outgrows_its_limit_is_refused_with_a_hint() -> None:
    writer = to_array(name="all").open(Spec(FLOAT32, (3,), Stream(None)))
    assert isinstance(writer, MemoryWriter)
    writer.limit_bytes = 120
    writer.write(np.zeros((10, 3), np.float32), 0)
    with pytest.raises(RunError) as caught:
        writer.write(np.zeros((1, 3), np.float32), 10)
    for word in ("all", "132", "120", "fc.save"):
        assert word in str(caught.value)
    writer.abort()


def test_a_result_beyond_any_memory_is_refused() -> None:
    for length in (1 << 55, 1 << 62):
        with pytest.raises(RunError, match=r"fc\.save"):
            to_array().open(Spec(FLOAT32, (3,), Stream(length)))


def test_another_dtype_is_never_cast() -> None:
    writer = to_array().open(Spec(FLOAT32, (), Stream(3)))
    with pytest.raises(TypeError, match="cast"):
        writer.write(np.zeros(3), 0)


def test_it_says_that_it_stays_in_memory() -> None:
    assert to_array().in_memory
