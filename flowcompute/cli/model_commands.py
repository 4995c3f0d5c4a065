"""Commands for files of models: one that lets a language model write, descriptions, and runs of ONNX models."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import flowcompute as fc
from flowcompute.cli.named_job import JobName, job_name
from flowcompute.cli.overview import COMMANDS
from flowcompute.elements import Element
from flowcompute.errors import SourceError, SpecError
from flowcompute.files import ForeignJsonError, expect, explain, read_json, read_json_file, shown

MOST_SHOWN = 60
"""Characters of a value that are shown."""

MOST_JSON_BYTES = 1 << 24
"""Bytes of JSON for a template that are read."""


def add_generate(commands: Any) -> None:
    """Add `generate` to a parser's sub-parsers."""
    parser = commands.add_parser("generate", help=COMMANDS["generate"])
    parser.add_argument("model", metavar="MODEL", help="a GGUF file")
    parser.add_argument("-p", "--prompt", help="the text; by default standard input")
    parser.add_argument("-n", "--max-tokens", type=int, default=256, metavar="N", help="of the answer at most (256)")
    parser.add_argument("--chat", action="store_true", help="the text is a message, which the model answers")
    parser.add_argument("--tools", metavar="FILE", help="JSON schemas of functions that the model may ask for; --chat")
    parser.add_argument(
        "--chat-template-kwargs",
        default="{}",
        metavar="JSON",
        help="variables of the file's template, as '{\"enable_thinking\": false}'; --chat",
    )
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the likeliest token (0)")
    parser.add_argument("--top-p", type=float, default=1.0, metavar="P", help="only the likeliest tokens, up to P (1)")
    parser.add_argument("--top-k", type=int, default=0, metavar="K", help="only the K likeliest tokens (0: all)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (0)")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; may be given again")
    parser.add_argument("--context", type=int, metavar="N", help="tokens of prompt and answer (as the file says)")
    parser.add_argument("--device", default="auto", help="what computes, as `flowcompute devices` lists them")
    # It loads no code of the user's.
    parser.set_defaults(act=_generate, only_ours=True)


def _generate(options: argparse.Namespace) -> None:
    model = fc.models.load(options.model)
    prompt = sys.stdin.read() if options.prompt is None else options.prompt
    tools, variables = _template_values(options)
    if options.chat:
        prompt = model.chat([{"role": "user", "content": prompt}], tools=tools, **variables)
    with model.generate(
        prompt,
        options.max_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        seed=options.seed,
        stop=options.stop,
        context=options.context,
        device=options.device,
    ) as said:
        for piece in said:
            print(piece, end="", flush=True)
    print()


def _template_values(options: argparse.Namespace) -> tuple[list[Any] | None, dict[str, Any]]:
    """Return the tools, and the variables of the template, that the command was given.

    Raises:
        SourceError: if the file of tools cannot be read, or is no list.
        SpecError: if the variables are no JSON object, or there is no chat that either is for.
    """
    try:
        variables = read_json(options.chat_template_kwargs, _mapping, limit_bytes=MOST_JSON_BYTES)
    except ForeignJsonError as error:
        raise SpecError(
            "cannot use these variables of a template",
            element="--chat-template-kwargs",
            expected='a JSON object such as {"enable_thinking": false}',
            got=str(error),
        ) from None
    if not options.chat and (variables or options.tools is not None):
        given = "--chat-template-kwargs" if variables else "--tools"
        raise SpecError("cannot use this without a chat", element=given, hint="add --chat")
    if options.tools is None:
        return None, variables
    try:
        return read_json_file(options.tools, _list, limit_bytes=MOST_JSON_BYTES), variables
    except (OSError, ForeignJsonError) as error:
        got, hint = explain(error) if isinstance(error, OSError) else (str(error), None)
        raise SourceError(
            "cannot read tools", element=options.tools, expected="a JSON list of schemas", got=got, hint=hint
        ) from None


def _mapping(data: Any) -> dict[str, Any]:
    made: dict[str, Any] = expect(data, {})
    if own := sorted(made.keys() & {"self", "messages", "tools"}):
        raise ForeignJsonError(f"it has {', '.join(own)}, which are given otherwise")
    return made


def _list(data: Any) -> list[Any]:
    made: list[Any] = expect(data, list)
    return made


def describe_model(path: str) -> str:
    """Describe a GGUF file in a few lines of text: its architecture, its metadata, and the types of its tensors."""
    weights = fc.weights(path)
    architecture = weights.metadata.get("general.architecture", "no architecture")
    types = Counter(weights.types[name] for name in weights)
    counts = ", ".join(f"{count} {kind}" for kind, count in types.most_common())
    named = shown(architecture)[:MOST_SHOWN] if isinstance(architecture, str) else "no name of an architecture"
    lines = [shown(path), f"  model   {named}", f"  tensors {len(weights)}: {counts}"]
    return "\n".join([*lines, *(f"  {shown(key)} = {_shown(value)}" for key, value in weights.metadata.items())])


def _shown(value: Any) -> str:
    if isinstance(value, str):
        text = repr(value)
        return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
    return str(value) if isinstance(value, bool | int | float) else f"{len(value):,} values"


# -- ONNX ---------------------------------------------------------------------------------------------


def run_target(text: str) -> JobName | str:
    """Parse what `run` computes: the path of an ONNX model, or a job. This is an argparse type."""
    return text if text.endswith(".onnx") else job_name(text)


def onnx_job(options: argparse.Namespace) -> tuple[Element, ...]:
    """Return an ONNX model of the given files, whose outputs are saved or are values of the job.

    Raises:
        SpecError: if files are given for no input or output of it.
        FlowError: if the model or a file cannot be read, or the model not computed.
    """
    model = fc.onnx.load(options.job)
    inputs = _by_name("--input", options.inputs, [port.name for port in model.inputs])
    outputs = _by_name("--output", options.output, [port.name for port in model.outputs])
    made = model(**{name: fc.open(path) for name, path in inputs.items()})
    elements = dict(made.items()) if len(model.outputs) > 1 else {model.outputs[0].name: made}
    if not outputs:
        return tuple(elements.values())
    return tuple(elements[name] >> fc.save(path) for name, path in outputs.items())


def _by_name(option: str, given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return files by the names of ports; one without a name is for the first port."""
    made: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in names:
            name, path = next(iter(names), ""), text
        if name in made or name not in names:
            raise SpecError(
                "cannot take this file",
                element=option,
                expected=f"NAME=FILE, where NAME is one of {', '.join(names)}",
                got=text,
            )
        made[name] = path
    return made
