"""Texts of files and iterables: where lines end, what is refused and by which name, what is counted and closed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flowcompute as fc
from flowcompute.files.file_layer import Files
from flowcompute.tokens import text_file
from flowcompute.tokens.text_file import TextFile
from tests.support.slow import slow_but

AWKWARD = {
    "none": b"",
    "one": b"a",
    "ended": b"a\nb\n",
    "no end": b"a\nb",
    "empty lines": b"\n\na\n\n",
    "one empty line": b"\n",
    "CRLF": b"a\r\n\r\nb\r\n",
    "CR alone": b"a\rb\r\nc\r",
    "CR at the end": b"a\n\r",
    "NUL": b"a\0b\n\0\n",
    "BOM": b"\xef\xbb\xbfa\n\xef\xbb\xbfb",
    "BOM alone": b"\xef\xbb\xbf",
    "BOM and an empty line": b"\xef\xbb\xbf\n",
    "other separators": "a\u2028b\x0bc\x85d\n\x1ce".encode(),
    "of four bytes": "\U0001f600\nü€\n".encode(),
    "lines of many sizes": b"".join(b"x" * size + b"\n" for size in (*range(40), 31, 32, 33, 200)),
}


def lines_of(data: bytes) -> list[str]:
    """What Python makes of it."""
    lines = data.decode("utf-8-sig").split("\n")
    ended = [line.removesuffix("\r") for line in lines[:-1]]
    return ended + ([lines[-1]] if lines[-1] else [])


class Watched(Files):
    """Counts what is open."""

    def __init__(self) -> None:
        self.open = 0

    def open_read(self, path: str) -> int:
        self.open += 1
        return super().open_read(path)

    def close(self, handle: int) -> None:
        self.open -= 1
        super().close(handle)


@pytest.mark.parametrize("read_bytes", slow_but((1, 32), (1, 2, 3, 7, 31, 32, 33, 1 << 18)))
@pytest.mark.parametrize("name", AWKWARD)
def test_lines_are_those_of_python(name: str, read_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "_READ_BYTES", read_bytes)
    path = tmp_path / "t.txt"
    path.write_bytes(AWKWARD[name])
    texts = fc.models.texts(path)
    assert list(texts) == lines_of(AWKWARD[name])
    assert texts.count() == len(lines_of(AWKWARD[name]))
    assert list(texts) == lines_of(AWKWARD[name]), "they can be read again"


def test_each_text_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(AWKWARD["BOM"] + b"\r\n\nlast")
    reader = TextFile(path).begin(text_file.TextPlace(0, 0), "texts")
    places, said = [], []
    while (text := reader.read_text()) is not None:
        places.append(reader.place)
        said.append(text)
    reader.close()
    for number, place in enumerate(places, 1):
        assert place.text == number
        again = TextFile(path).begin(place, "texts")
        assert again.read_text() == (said[number] if number < len(said) else None)
        again.close()


@pytest.mark.parametrize("place", [(0, 1), (1, 1), (3, 2), (0, 10_000), (1, 3), (-1, 0)])
def test_no_text_begins_there(place: tuple[int, int], tmp_path: Path) -> None:
    files = Watched()
    path = tmp_path / "t.txt"
    path.write_bytes(b"ab\ncd\n")
    texts = TextFile(path, files=files)
    if place == (1, 3):
        texts.begin(text_file.TextPlace(*place), "texts").close()
    else:
        with pytest.raises(ValueError, match=r"begins at byte|has no text"):
            texts.begin(text_file.TextPlace(*place), "texts")
    assert not files.open


def test_lines_of_json(tmp_path: Path) -> None:
    said = ["a", "", "ü\n\0", "\U0001f600", " \u2028"]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"id": i, "text": one}) + "\r\n" for i, one in enumerate(said)))
    texts = fc.models.texts(path, key="text")
    assert list(texts) == said
    assert texts.count() == len(said)


REFUSED: dict[str, tuple[bytes, str | None, str, str]] = {
    "not UTF-8": (b"a\nb\xff\xfec\n", None, r"line 2 of .*t\.txt: it is not UTF-8", r"b'\\xff\\xfec' at byte 1"),
    "cut off": (b"\n\n\xc3", None, "line 3 of .*: it is not UTF-8", r"b'\\xc3' at byte 0"),
    "UTF-16": ("ab\n".encode("utf-16"), None, "line 1 of .*: it is not UTF-8", r"\\xff\\xfea"),
    "too long": (b"a\n" + b"b" * 1025, None, "line 2 of .*: it is too long", "more than 1,024"),
    "far too long": (b"b" * 100_000 + b"\n", None, "line 1 of .*: it is too long", "more than 1,024"),
    "no JSON": (b'{"text": "a"}\n{"text": ', "text", "line 2 of .*: it is not JSON", "Expecting value"),
    "an empty line of JSON": (b'{"text": "a"}\n\n', "text", "line 2 of .*: it is not JSON", "Expecting value"),
    "deep JSON": (b"[" * 1000, "text", "line 1 of .*: it is not JSON", ""),
    "a list": (b'["text"]', "text", "line 1 of .*: it has no such text", "'text'"),
    "another entry": (b'{"body": "a", "id": 1}', "text", "line 1 of .*: it has no such text", "'body', 'id'"),
    "no text": (b'{"text": null}', "text", "line 1 of .*: it has no such text", "None"),
    "half a character": (rb'{"text": "a\ud800"}', "text", "line 1 of .*: UTF-8 cannot say its text", "at character 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_text_is_named(name: str, tmp_path: Path) -> None:
    data, key, message, got = REFUSED[name]
    path = tmp_path / "t.txt"
    path.write_bytes(data)
    files = Watched()
    with pytest.raises(fc.SourceError, match=message) as caught:
        list(TextFile(path, key, 1024, files=files))
    assert caught.value.got is not None

    assert re.search(got, caught.value.got)
    assert caught.value.hint
    assert not files.open


def test_the_longest_line_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    for end in (b"", b"\n", b"\r\n"):
        path.write_bytes(b"a\n" + b"b" * 64 + end)
        assert list(fc.models.texts(path, longest=64)) == ["a", "b" * 64]
        with pytest.raises(fc.SourceError, match="line 2"):
            list(fc.models.texts(path, longest=63))


def test_a_line_of_ten_megabytes_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"a\n" + b"0123456789" * 1_000_000 + b"\r\nb")
    texts = fc.models.texts(path, longest="10MB")
    assert [len(one) for one in texts] == [1, 10_000_000, 1]
    with pytest.raises(fc.SourceError, match="line 2"):
        list(fc.models.texts(path))


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"a\nb\n")
    texts, others = fc.models.texts(path), iter(fc.models.texts(path))
    assert next(others) == "a"
    path.write_bytes(b"a\nb\nc\n")
    for use in (list, TextFile.count):
        with pytest.raises(fc.SourceError, match="the file changed since it was opened"):
            use(texts)
    with pytest.raises(fc.SourceError, match="the file changed since it was opened"):
        list(others)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("nowhere.txt", {}, fc.SourceError, "cannot open"),
        ("t.jsonl", {}, fc.SpecError, "cannot tell where the texts"),
        ("t.txt", {"key": 3}, fc.SpecError, "cannot use this key="),
        ("t.txt", {"longest": 0}, fc.PlanError, "longest= that is not positive"),
        *((f"t{one}", {}, fc.SpecError, "cannot read texts of") for one in (".parquet", ".csv", ".txt.gz", ".JSON")),
    ],
)
def test_what_holds_no_texts(
    name: str, options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    if "nowhere" not in name:
        (tmp_path / name).write_bytes(b"a\n")
    with pytest.raises(error, match=message):
        fc.models.texts(tmp_path / name, **options)


@pytest.mark.parametrize("value", [3, None, b"ab"])
def test_what_yields_no_texts(value: Any) -> None:
    with pytest.raises(fc.SpecError, match="cannot take these texts"):
        fc.models.texts(value)
    with pytest.raises(fc.SpecError, match="cannot take these texts"):
        fc.models.texts(["a"], key="text")


def test_iterables() -> None:
    class Anew:
        def __iter__(self) -> Iterator[str]:
            return iter(("a", "", "c"))

    assert list(fc.models.texts(Anew())) == ["a", "", "c"] == list(fc.models.texts(["a", "", "c"]))
    assert fc.models.texts(["a", "b"]).count() == 2
    with pytest.raises(fc.SpecError, match="cannot count these texts"):
        fc.models.texts(Anew()).count()
    once = fc.models.texts(iter(["a"]))
    assert list(once) == ["a"]
    with pytest.raises(fc.SourceError, match="the iterator can be read only once"):
        list(once)


def test_iterables_that_fail_are_closed() -> None:
    closed = []

    def yields(*values: Any) -> Iterator[Any]:
        try:
            yield from values
            raise KeyError("lost")
        finally:
            closed.append(True)

    wrong: list[tuple[Any, str]] = [
        (3, "cannot take text 1"),
        (None, "cannot take text 1"),
        ("é" * 40, "text 1: it is too"),
    ]
    for value, message in wrong:
        with pytest.raises(fc.SourceError, match=message):
            list(fc.models.texts(yields("a", value), longest=79))
    with pytest.raises(fc.SourceError, match="text 1: the iterable raised KeyError: 'lost'"):
        list(fc.models.texts(yields("é" * 40), longest=80))
    assert len(closed) == 4


def test_an_iterable_that_ends_too_early() -> None:
    reader = fc.models.texts(["a", "b"]).begin(text_file.TextPlace(2, 0), "texts")
    assert reader.read_text() is None
    reader.close()
    reader = fc.models.texts(["a", "b"]).begin(text_file.TextPlace(3, 0), "texts")
    with pytest.raises(fc.SourceError, match="ended before the text to go on with"):
        reader.read_text()
    reader.close()


def test_names_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_bytes(b"a")
    monkeypatch.chdir(tmp_path)
    texts = fc.models.texts("t.txt")
    monkeypatch.chdir(os.path.sep)
    assert list(texts) == ["a"]
    assert "t.txt" in repr(texts)
