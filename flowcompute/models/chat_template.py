"""Prompts of chats by the template of a file, which nobody has checked: a process of its own writes them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Collection, Mapping
from typing import Any

from flowcompute.elements import user_site
from flowcompute.elements.arguments import several
from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.files import shown
from flowcompute.imports import subprocess
from flowcompute.tokens import TextTokenizer

LIMIT_S = 5
"""Seconds of the processor that a template may take. Those of known models take some milliseconds."""

LIMIT_BYTES = 1 << 29
"""Memory that its process may take, Python included."""

_WAIT_S = 60.0
"""Seconds of the clock: a machine may be busy, and some systems count none of the processor."""

_START = (
    "import sys, json, runpy; sys.path[:] = json.loads(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
)


def chat_prompt(
    metadata: Mapping[str, Any],
    path: str,
    tokenizer: TextTokenizer,
    messages: object,
    *,
    tools: object,
    documents: object,
    begins_answer: bool,
    options: Mapping[str, Any],
) -> str:
    """Return the prompt of a chat by the template of a file; see `Model.chat`.

    Args:
        metadata: of the file. It may have a second template, for chats with tools.
        path: of the file, for errors.
        tokenizer: of the file.
        messages: of the chat.
        tools: that the model may ask for; None for none.
        documents: that the answer is to rest on; None for none.
        begins_answer: whether the prompt ends where an answer begins.
        options: other variables of the template.

    Raises:
        SourceError: if the file has no template, or it fails, or takes too long or too much memory.
        SpecError: if an argument is of another kind, or the template does not read it.
    """
    said = _mappings("messages", messages, 'messages such as {"role": "user", "content": "Hello"}')
    for one in said:
        if not isinstance(one.get("role"), str):
            raise _unfit("messages", 'a "role" in each message, such as "user"', one)
        if one.get("tool_calls") is not None:
            _mappings("messages", one["tool_calls"], 'tool_calls such as {"function": {"name": "now", ...}}')
    given: dict[str, list[Any] | None] = {"tools": None, "documents": None}
    if tools is not None:
        given["tools"] = _mappings("tools", tools, 'JSON schemas such as {"type": "function", "function": {...}}')
    if documents is not None:
        given["documents"] = _mappings("documents", documents, 'documents such as {"title": "A", "text": "B"}')
    template = metadata.get("tokenizer.chat_template")
    if given["tools"]:
        template = metadata.get("tokenizer.chat_template.tool_use", template)
    if not isinstance(template, str):
        raise SourceError("cannot find a template for chats", element=path, hint="give the whole prompt as a text")
    asked = [*(name for name, values in given.items() if values), *options]
    # As in transformers, tools and documents are there where none are given, and options replace pieces.
    values = {**tokenizer.named, **given, "add_generation_prompt": begins_answer, **options, "messages": said}
    prompt = rendered(template, path, asked, **values)
    return prompt if tokenizer.begin is None else prompt.removeprefix(tokenizer.piece(tokenizer.begin))


def _mappings(what: str, values: object, expected: str) -> list[Any]:
    """Return the mappings that an argument lists.

    Raises:
        SpecError: if it lists none, or anything else.
    """
    listed = several("chat", what, values, f"a list of {expected}")
    if not all(isinstance(one, Mapping) for one in listed):
        raise _unfit(what, expected, values)
    return listed


def _unfit(what: str, expected: str, got: object) -> SpecError:
    return SpecError(f"cannot take {what}=", element="chat", site=user_site(), expected=expected, got=short_repr(got))


def rendered(template: str, path: str, asked: Collection[str] = (), /, **values: Any) -> str:
    """Return what a template of a file makes of values. It is not trusted: it sees nothing else, and changes nothing.

    Args:
        template: in the language of jinja2.
        path: of the file, for errors.
        asked: names of values that it has to read.
        values: what JSON can say.

    Raises:
        SourceError: where jinja2 is not installed, or the template fails, or takes too long or too much memory.
        SpecError: if values are what JSON cannot say, or the template does not read what is asked of it.
    """
    try:
        limits = {"seconds": LIMIT_S, "bytes": LIMIT_BYTES}
        job = json.dumps({"template": template, "values": values, "asked": list(asked), **limits}, default=dict)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(
            "cannot hand these messages to a template",
            element="chat",
            site=user_site(),
            expected="mappings of texts, numbers and lists",
            got=str(error)[:200],
        ) from error
    program = os.path.join(os.path.dirname(__file__), "_jinja2.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _START, json.dumps([str(place) for place in sys.path]), program],
            input=job.encode(),
            capture_output=True,
            timeout=_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refusal(path, f"no answer within {_WAIT_S:g} s") from None
    if done.returncode == -getattr(signal, "SIGXCPU", 0):
        raise _refusal(path, f"no answer within {LIMIT_S} s of the processor")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _refusal(path, f"its process ended with {done.returncode}: {said[-1][:200] if said else 'no word'}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "problem" in answer:
        raise SourceError(
            "cannot make a prompt of a chat: jinja2 is not installed",
            element="models",
            got=answer["problem"],
            hint="run pip install 'flowcompute[models]'",
        )
    if "error" in answer:
        raise _refusal(path, answer["error"])
    if "unread" in answer:
        raise SpecError(
            f"cannot hand {', '.join(answer['unread'])} to the file's template, which does not read it",
            element="chat",
            site=user_site(),
            expected=f"what the template of {shown(path)} reads",
            got=shown(", ".join(answer["read"]))[:500] or "nothing",
            hint="say it in a message",
        )
    text: str = answer["text"]
    return text


def _refusal(path: str, got: str) -> SourceError:
    hint = "give other messages, or the whole prompt as a text"
    return SourceError("cannot write the chat by the file's template", element=path, got=got, hint=hint)
