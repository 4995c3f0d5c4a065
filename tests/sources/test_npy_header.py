"""The .npy header: what NumPy writes is read, what it does not is refused, and nothing ever crashes."""

import io
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.sources.npy_header import MAX_HEADER_BYTES, Header, HeaderError, read_header
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES

NUMBERS = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)


def parse(data: bytes, size: int | None = None) -> Header:
    def read(offset: int, count: int) -> bytes:
        assert offset >= 0
        assert count <= max(MAX_HEADER_BYTES, 12)
        return data[offset : offset + count]

    return read_header(read, len(data) if size is None else size)


def head(text: str, version: tuple[int, int] = (1, 0), end: str = "\n") -> bytes:
    body = (text + end).encode("utf-8" if version == (3, 0) else "latin-1")
    length = struct.pack("<H" if version == (1, 0) else "<I", len(body))
    return b"\x93NUMPY" + bytes(version) + length + body


def entry(descr: str = "'<f4'", fortran: str = "False", shape: str = "(3, 4)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


@given(
    st.sampled_from(NUMBERS),
    st.lists(st.integers(0, 5), max_size=5),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(1, 0), (2, 0), (3, 0)]),
)
def test_what_numpy_writes_is_read(
    dtype: np.dtype, shape: list[int], fortran: bool, swapped: bool, version: tuple[int, int]
) -> None:
    dtype = dtype.newbyteorder(">") if swapped else dtype
    array = np.zeros(shape, dtype, order="F" if fortran else "C")
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    got = parse(stream.getvalue())
    assert got.dtype == dtype
    assert got.dtype.isnative == dtype.isnative
    assert got.shape == array.shape
    assert got.fortran == (array.flags.fnc)
    assert got.offset == len(stream.getvalue()) - array.nbytes


@pytest.mark.parametrize(
    "text",
    [
        entry(),
        entry().replace("'", '"'),
        "{'shape':(3,4),'fortran_order':False,'descr':'<f4'}",
        "{\n'descr' : '<f4' ,\t'fortran_order' : False , 'shape' : ( 3 , 4 ) }   ",
        entry(shape="(3L, 4L)"),
        entry(shape="(3, 4,)"),
    ],
)
def test_other_writers_are_understood(text: str) -> None:
    header = head(text)
    assert parse(header) == Header(np.dtype("<f4"), False, (3, 4), len(header))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "an empty file"),
        (b"\x93NUMP", "not a .npy file"),
        (b"PK\x03\x04" + bytes(100), "not a .npy file"),
        (b"\x93NUMPY", "version"),
        (b"\x93NUMPY\x01", "version"),
        (b"\x93NUMPY\x01\x00", "ends inside"),
        (b"\x93NUMPY\x01\x00\x76", "ends inside"),
        (b"\x93NUMPY\x02\x00\x76\x00", "ends inside"),
        (b"\x93NUMPY\x09\x00" + bytes(100), "9.0"),
        (b"\x93NUMPY\x00\x00" + bytes(100), "0.0"),
        (b"\x93NUMPY\x01\x01" + bytes(100), "1.1"),
        (b"\x93NUMPY\xff\xff" + bytes(100), "255.255"),
        (b"\x93NUMPY\x01\x00\x00\x00" + bytes(100), "line break"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100), "too large"),
        (b"\x93NUMPY\x02\x00" + struct.pack("<I", MAX_HEADER_BYTES + 1) + bytes(100_000), "too large"),
        (b"\x93NUMPY\x01\x00\xff\xff" + bytes(100), "ends inside"),
        (head(entry(), end=""), "line break"),
        (head(entry() + "\n{}"), "cannot be parsed"),
        (b"\x93NUMPY\x03\x00\x04\x00\x00\x00\xff\xfe{\n", "UTF-8"),
    ],
)
def test_broken_frames_are_refused(data: bytes, word: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse(data)
    error = caught.value
    assert word in f"{error.message} {error.got}"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "cannot be parsed"),
        ("{}", "incomplete"),
        ("[]", "cannot be parsed"),
        ("{'descr': '<f4', 'fortran_order': False}", "shape"),
        (entry()[:-1] + "'more': 1}", "cannot be parsed"),
        (entry()[:-1] + "'descr': '<f8'}", "twice"),
        (entry()[:-1] + '"shape": (1,)}', "twice"),
        (entry(fortran="0"), "cannot be parsed"),
        (entry(fortran="'False'"), "cannot be parsed"),
        (entry(fortran="None"), "cannot be parsed"),
        (entry(shape="3"), "cannot be parsed"),
        (entry(shape="(3)"), "tuple"),
        (entry(shape="[3]"), "cannot be parsed"),
        (entry(shape="(3.0,)"), "whole numbers"),
        (entry(shape="(-1, 4)"), "whole numbers"),
        (entry(shape="(True, 4)"), "whole numbers"),
        (entry(shape="('3', 4)"), "whole numbers"),
        (entry(shape="(0x10, 4)"), "whole numbers"),
        (entry(shape="(1_000,)"), "whole numbers"),
        (entry(shape="(1 000,)"), "whole numbers"),
        (entry(shape="(,)"), "whole numbers"),
        (entry(shape="(3,,4)"), "whole numbers"),
        (entry(shape="(\u0663,)").encode("utf-8").decode("latin-1"), "whole numbers"),
        (entry(shape=f"({2**63},)"), "too large"),
        (entry(shape=f"({2**64},)"), "too large"),
        (entry(shape=f"({'9' * 5000},)"), "too large"),
        (entry(shape=f"({'1,' * 65})"), "axes"),
        (entry(shape="(" * 3000 + ")" * 3000), "cannot be parsed"),
        (entry(shape="-" * 30000 + "1"), "cannot be parsed"),
        (entry(shape="(__import__('os').getpid(),)"), "cannot be parsed"),
        (entry(descr="3"), "cannot be parsed"),
        (entry(descr="'<f4\\x00'"), "cannot be parsed"),
        (entry(descr="[('a', '<f4')]"), "structured"),
        (entry(descr="[('a', [('b', '|O')])]"), "structured"),
        (entry(descr="('<f4', (3,))"), "cannot be parsed"),
        (entry(descr="'|O'"), "object"),
        (entry(descr="'O'"), "object"),
        (entry(descr="'O8'"), "object"),
        (entry(descr="'<c8'"), "complex"),
        (entry(descr="'|S0'"), "byte strings"),
        (entry(descr="'|S5'"), "byte strings"),
        (entry(descr="'<U5'"), "text"),
        (entry(descr="'|V0'"), "void"),
        (entry(descr="'|V8'"), "void"),
        (entry(descr="'<M8[ns]'"), "dates"),
        (entry(descr="'<m8[s]'"), "time spans"),
        (entry(descr="'<f16'"), "not supported"),
        (entry(descr="'<f3'"), "not supported"),
        (entry(descr="'<f1'"), "not supported"),
        (entry(descr="'<b4'"), "not supported"),
        (entry(descr="'<i16'"), "not supported"),
        (entry(descr="''"), "not supported"),
        (entry(descr="'<f4,<f4'"), "not supported"),
        (entry(descr="'(1000000000,)<f4'"), "not supported"),
        (entry(descr="'float32'"), "not supported"),
        (entry(descr="'f4'"), "byte order"),
        (entry(descr="'|f4'"), "byte order"),
        (entry(descr="'=f4'"), "byte order"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_what_is_no_array_of_plain_numbers_is_refused(text: str, word: str, version: tuple[int, int]) -> None:
    with pytest.raises(HeaderError) as caught:
        parse(head(text, version))
    error = caught.value
    assert word in f"{error.message} {error.got}"
    assert len(f"{error.message} {error.got}") < 400
    assert f"{error.message}{error.got}".isprintable()


def test_digits_of_other_scripts_are_no_digits() -> None:
    with pytest.raises(HeaderError, match="whole numbers"):
        parse(head(entry(shape="(\u0663,)"), (3, 0)))


def test_two_byte_void_is_kept_for_bfloat16() -> None:
    assert parse(head(entry(descr="'<V2'"))).dtype == np.dtype("V2")
    assert parse(head(entry(descr="'|V2'"))).dtype == np.dtype("V2")


def test_control_characters_do_not_reach_the_message() -> None:
    with pytest.raises(HeaderError) as caught:
        parse(head(entry(descr="'<f4\x1b[2J'")))
    assert "\x1b" not in f"{caught.value.message}{caught.value.got}"


@pytest.mark.parametrize("shape", ["(300000000000,)", f"({2**63 - 1}, {2**63 - 1})", f"({2**33}, {2**33})"])
def test_large_shapes_cost_nothing(shape: str) -> None:
    header = head(entry(shape=shape))
    tracemalloc.start()
    parse(header)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


def test_every_truncation_of_a_header_is_refused() -> None:
    header = head(entry())
    for count in range(len(header)):
        with pytest.raises(HeaderError):
            parse(header[:count])


def test_a_file_that_shrinks_while_its_header_is_read_is_refused() -> None:
    header = head(entry())
    with pytest.raises(HeaderError, match="ends inside"):
        parse(header[:40], size=len(header))


def _never_another_exception(data: bytes) -> None:
    try:
        header = parse(data)
    except HeaderError:
        return
    assert header.dtype in NUMBERS or header.dtype.newbyteorder("=") in NUMBERS or header.dtype == np.dtype("V2")
    assert all(type(size) is int and 0 <= size < 1 << 63 for size in header.shape)
    assert 10 <= header.offset <= len(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    _never_another_exception(data)


@given(st.binary(max_size=300), st.integers(0, 3))
def test_any_bytes_after_the_magic_are_read_or_refused(data: bytes, version: int) -> None:
    _never_another_exception(b"\x93NUMPY" + bytes([version, 0]) + data)


@given(st.text(max_size=200), st.sampled_from([(1, 0), (3, 0)]))
def test_any_text_is_read_or_refused(text: str, version: tuple[int, int]) -> None:
    _never_another_exception(head(text.encode("utf-8", "replace").decode("latin-1"), version))


WORDS = ["'descr'", "'fortran_order'", "'shape'", "'<f4'", "'|O'", "True", "False", ":", ",", "{", "}", "(", ")", " ",
         "3", "L", "0", "-", "'", '"', "[", "]", "\\", "\n", "None", "9" * 20]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_any_words_of_the_grammar_are_read_or_refused(words: list[str]) -> None:
    _never_another_exception(head("".join(words)))


@given(st.integers(0, 127), st.integers(0, 255))
def test_any_changed_byte_is_read_or_refused(index: int, value: int) -> None:
    data = bytearray(head(entry() + " " * 60))
    data[index] = value
    _never_another_exception(bytes(data))


@pytest.mark.parametrize("unit", ["}", "} ", "1", "1,", " ", "'a':1,", "''", "(", "\\"])
def test_long_headers_are_refused_in_linear_work(unit: str) -> None:
    # A grammar that backtracks would take minutes here: 65,000 characters squared.
    filler = unit * (65_000 // len(unit))
    for text in (filler, "{" + filler, "{" + filler + "}", entry(shape=f"({filler}"), entry(descr=f"'{filler}")):
        data = head(text)
        if len(data) <= MAX_HEADER_BYTES:
            with pytest.raises(HeaderError):
                parse(data)
