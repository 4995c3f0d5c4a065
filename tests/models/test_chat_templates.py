"""Templates of chats that nobody has checked: each is written or refused, in limited time and memory."""

from __future__ import annotations

import time
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import flowcompute as fc
from flowcompute.models import chat_template

FOR_EVER = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
DOUBLED = "{% set n = namespace(s='a') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}"


def written(template: str, messages: Any = ({"role": "user", "content": "Hi"},)) -> str:
    return chat_template.rendered(template, "model.gguf", messages=messages)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for %}", "TemplateSyntaxError"),
        ("{{ raise_exception('only users speak') }}", "got       the template says: only users speak"),
        ("{{ messages[0].nothing.there }}", "UndefinedError"),
        ("{% for i in messages %}" * 25 + "{% endfor %}" * 25, "SyntaxError"),
        ("{{ 3|dictsort }}", "AttributeError"),
        ("{{ cycler().next() }}", "RuntimeError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
        ("{{ 'a' * 10 ** 11 }}", "MemoryError"),
        ("{{ '%99999999999d' % 1 }}", "Error"),
        (DOUBLED, "MemoryError"),
        ("{{ 'a' * 2 ** 24 }}b", "characters"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{% include '/etc/passwd' %}", "Error"),
    ],
)
def test_templates_that_fail_are_refused(template: str, words: str) -> None:
    with pytest.raises(fc.SourceError, match=words) as caught:
        written(template)
    assert "model.gguf" in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("template", [FOR_EVER, "{{ (3 ** 9999999) ** 9999 }}"])
def test_templates_for_ever_are_refused(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "LIMIT_S", 1)
    with pytest.raises(fc.SourceError, match="no answer within 1 s of the processor"):
        written(template)


def test_a_process_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "_WAIT_S", 0.0)
    with pytest.raises(fc.SourceError, match="no answer within 0 s"):
        written(FOR_EVER)


def test_a_process_that_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "_START", "import sys; sys.exit('gone')")
    with pytest.raises(fc.SourceError, match="ended with 1: gone"):
        written("")


def test_jinja2_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "_START", f"import sys; sys.modules['jinja2'] = None; {chat_template._START}")
    with pytest.raises(fc.SourceError, match=r"jinja2 is not installed(.|\n)*flowcompute\[models\]"):
        written("")


def test_templates_see_what_messages_hold() -> None:
    messages = [MappingProxyType({"role": "tool", "content": None, "of": [1, 2.5, {"é": "\udcff"}]})]
    template = "{% for one in messages %}\n  {{ one.role }} {{ one.content }} {{ one.of }}\n{% endfor %}\n"
    assert written(template, messages) == "  tool None [1, 2.5, {'é': '\\udcff'}]\n"


def test_json_in_templates_is_that_of_transformers() -> None:
    messages = [{"role": "tool", "content": {"b": "it's <é> & x", "a": [1, None]}}]
    assert written("{{ messages[0].content | tojson }}", messages) == """{"b": "it's <é> & x", "a": [1, null]}"""
    assert written("{{ messages[0].content.a | tojson(indent=1) }}", messages) == "[\n 1,\n null\n]"
    assert written("{{ messages[0].content | tojson(ensure_ascii=true, sort_keys=true) }}", messages) == (
        r"""{"a": [1, null], "b": "it's <\u00e9> & x"}"""
    )


def test_templates_leave_loops() -> None:
    template = (
        "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}"
    )
    assert written(template + "{% endfor %}") == "023"


def test_templates_know_the_day() -> None:
    before = time.strftime("%d %b %Y")
    day = written("{{ strftime_now('%d %b %Y') }}")
    # Midnight may pass meanwhile.
    assert day in (before, time.strftime("%d %b %Y"))


@pytest.mark.parametrize("messages", [[object()], [{"role": b"user"}], [{1j: 2}]])
def test_messages_that_json_cannot_say_are_refused(messages: Any) -> None:
    with pytest.raises(fc.SpecError, match="mappings of texts"):
        written("{{ messages }}", messages)


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written("{{ messages }}")
    assert not list(tmp_path.iterdir())
