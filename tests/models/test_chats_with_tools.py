"""Chats with tools, documents and variables of templates: written as transformers does, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import flowcompute as fc
from flowcompute.cli import main
from flowcompute.models import chat_template
from tests.models.files import write_model

# As templates of Qwen 2.5 and 3: tools in a first message, calls and their results as JSON between marks.
MARKED = """\
{%- if tools %}
    {{- '<|im_start|>system\\nTools:' }}
    {%- for tool in tools %}
        {{- "\\n" }}{{ tool | tojson }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}{{ message.content }}{% endif %}
    {%- for call in message.tool_calls or [] %}
        {{- '<call>' + call.function.name + ' ' }}{{ call.function.arguments | tojson }}</call>
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think></think>' }}{% endif %}
{%- endif %}
"""

# As those of Llama 3.1: names that the template itself may set.
SET = """\
{{- bos_token }}
{%- if custom_tools is defined %}{% set tools = custom_tools %}{% endif %}
{%- if not tools is defined %}{% set tools = none %}{% endif %}
{%- if tools is not none %}{% for t in tools %}[{{ t.name }}]{% endfor %}{% endif %}
{%- for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}
"""

DOCUMENTS = "{% for d in documents or [] %}{{ d.title }}: {{ d.text }}\n{% endfor %}{{ messages[-1].content }}"

NOW = {"type": "function", "function": {"name": "now", "description": "it's <now>", "parameters": {"type": "object"}}}
ASK = {"role": "user", "content": "What time is it?"}
CALLED = [
    ASK,
    {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "now", "arguments": {"in": "é"}}}]},
    {"role": "tool", "name": "now", "content": "12:00"},
]


@pytest.fixture
def model(tmp_path: Path) -> fc.models.Model:
    return with_template(tmp_path, MARKED, context_length=512)


def with_template(folder: Path, template: Any, **options: Any) -> fc.models.Model:
    return fc.models.load(write_model(folder / "model.gguf", block_count=1, template=template, **options))


def test_tools_calls_and_results_are_written(model: fc.models.Model) -> None:
    assert model.chat(CALLED, tools=[NOW]) == (
        f"<|im_start|>system\nTools:\n{json.dumps(NOW)}<|im_end|>\n"
        "<|im_start|>user\nWhat time is it?<|im_end|>\n"
        '<|im_start|>assistant\n<call>now {"in": "é"}</call><|im_end|>\n'
        "<|im_start|>tool\n12:00<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert model.chat((MappingProxyType(ASK),), tools=(MappingProxyType(NOW),)) == model.chat([ASK], tools=[NOW])
    assert model.chat([ASK], tools=[]) == model.chat([ASK]) == model.chat([ASK], tools=None)


def test_variables_reach_the_template(model: fc.models.Model) -> None:
    begun = "<|im_start|>user\nWhat time is it?<|im_end|>\n<|im_start|>assistant\n"
    assert model.chat([ASK], enable_thinking=True) == begun
    assert model.chat([ASK], enable_thinking=False) == begun + "<think></think>"
    assert model.chat([ASK], add_generation_prompt=False) == begun.removesuffix("<|im_start|>assistant\n")


def test_documents_reach_the_template(tmp_path: Path) -> None:
    model = with_template(tmp_path, DOCUMENTS)
    assert model.chat([ASK], documents=[{"title": "A", "text": "B"}]) == "A: B\nWhat time is it?"
    assert model.chat([ASK]) == "What time is it?"


def test_names_that_a_template_sets_are_read(tmp_path: Path) -> None:
    model = with_template(tmp_path, SET)
    asked = "user:What time is it?;"
    assert model.chat([ASK]) == "<|im_start|>" + asked
    assert model.chat([ASK], tools=[{"name": "a"}]) == "<|im_start|>[a]" + asked
    assert model.chat([ASK], custom_tools=[{"name": "b"}], bos_token="") == "[b]" + asked


def test_what_a_template_does_not_read_is_refused(tmp_path: Path, model: fc.models.Model) -> None:
    with pytest.raises(fc.SpecError, match="cannot hand documents to the file's template") as refused:
        model.chat([ASK], documents=[{"text": "B"}])
    assert refused.value.got == "add_generation_prompt, enable_thinking, messages, tools"
    assert "test_chats_with_tools.py" in str(refused.value)
    assert "model.gguf" in str(refused.value)
    with pytest.raises(fc.SpecError, match="cannot hand enable_thinkin, range to"):
        model.chat([ASK], tools=[NOW], enable_thinkin=False, range=3)
    quoted = with_template(tmp_path, "tools {# tools #}{{ 'tools' }}{% set tools = 1 %}{{ tools }}")
    with pytest.raises(fc.SpecError, match="cannot hand tools to"):
        quoted.chat([ASK], tools=[NOW])
    assert quoted.chat([ASK], tools=[]) == "tools tools1"


def test_a_template_for_tools_is_taken_where_there_are_some(tmp_path: Path) -> None:
    templates = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "{{ tools[0].name }}"}]
    model = with_template(tmp_path, templates)
    assert model.chat([ASK]) == model.chat([ASK], tools=[]) == "plain"
    assert model.chat([ASK], tools=[{"name": "now"}]) == "now"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tools": NOW}, r"tools=(.|\n)*JSON schemas"),
        ({"tools": "now"}, r"tools=(.|\n)*JSON schemas"),
        ({"tools": [len]}, r"tools=(.|\n)*JSON schemas(.|\n)*built-in function len"),
        ({"tools": [{"default": 1j}]}, "texts, numbers and lists"),
        ({"documents": ["text"]}, r"documents=(.|\n)*title"),
        ({"documents": 3}, r"documents=(.|\n)*title"),
        ({"enable_thinking": {1, 2}}, "texts, numbers and lists"),
        ({"messages": [{"content": "Hi"}]}, r"messages=(.|\n)*role"),
        ({"messages": [{"role": 1}]}, r"messages=(.|\n)*role"),
        ({"messages": [{"role": "assistant", "tool_calls": {"name": "now"}}]}, "tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": ["now"]}]}, "tool_calls"),
    ],
)
def test_arguments_of_other_kinds_are_refused(model: fc.models.Model, options: dict[str, Any], words: str) -> None:
    with pytest.raises(fc.SpecError, match=words) as refused:
        model.chat(**{"messages": [ASK], **options})
    assert "test_chats_with_tools.py" in str(refused.value)


def test_what_is_to_be_learned_is_written_as_it_is() -> None:
    template = "{% set a = 1 %}{% generation %}{% set a = 2 %}said {{ a }}{% endgeneration %} {{ a }}"
    assert chat_template.rendered(template, "model.gguf") == "said 2 1"
    with pytest.raises(fc.SourceError, match="endgeneration"):
        chat_template.rendered("{% generation %}", "model.gguf")


def test_calls_end_answers(tmp_path: Path) -> None:
    model = with_template(tmp_path, MARKED, control=["<|eom_id|>"])
    assert model.tokenizer.encode("<|eom_id|>")[0] in model.tokenizer.ends


# -- command line -------------------------------------------------------------------------------------


def test_the_command_takes_tools_and_variables(
    model: fc.models.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([NOW]))
    prompt = model.chat([{"role": "user", "content": "Hi"}], tools=[NOW], enable_thinking=False)
    context = len(model.tokenizer.encode(prompt))
    command = ["generate", model.path, "-p", "Hi", "--chat", "-n", "9", "--device", "numpy"]
    command += ["--tools", str(tmp_path / "tools.json"), "--chat-template-kwargs", '{"enable_thinking": false}']
    assert main([*command, "--context", str(context + 1)]) == 0
    assert main([*command, "--context", str(context - 1)]) == 2
    assert f"{context} tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--chat", "--tools", "gone.json"], "cannot read tools"),
        (["--chat", "--tools", "mapping.json"], "got it is no list"),
        (["--chat", "--tools", "model.gguf"], "a JSON list of schemas got UnicodeDecodeError"),
        (["--chat", "--tools", "texts.json"], "expected JSON schemas"),
        (["--tools", "tools.json"], "cannot use this without a chat do add --chat"),
        (["--chat-template-kwargs", '{"a": 1}'], "cannot use this without a chat do add --chat"),
        (["--chat", "--chat-template-kwargs", "thinking"], "a JSON object"),
        (["--chat", "--chat-template-kwargs", "[1]"], "it is no mapping"),
        (["--chat", "--chat-template-kwargs", '{"messages": 1, "self": 2}'], "messages, self, which"),
        (["--chat", "--chat-template-kwargs", '{"enable_thought": 1}'], "cannot hand enable_thought to"),
    ],
)
def test_the_command_refuses_what_it_cannot_use(
    model: fc.models.Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in {"mapping": NOW, "texts": ["now"], "tools": [NOW]}.items():
        Path(f"{name}.json").write_text(json.dumps(data))
    assert main(["generate", model.path, "-p", "Hi", *options]) != 0
    error = capsys.readouterr().err
    assert words in " ".join(error.split())
    assert "Traceback" not in error
