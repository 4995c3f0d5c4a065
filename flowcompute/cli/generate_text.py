"""Command that lets a language model write, and the description of its file."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

import flowcompute as fc
from flowcompute.cli.overview import COMMANDS

MOST_SHOWN = 60
"""Characters of a value that are shown."""


def add_generate(commands: Any) -> None:
    """Add `generate` to a parser's sub-parsers."""
    parser = commands.add_parser("generate", help=COMMANDS["generate"])
    parser.add_argument("model", metavar="MODEL", help="a GGUF file")
    parser.add_argument("-p", "--prompt", help="the text; by default standard input")
    parser.add_argument("-n", "--max-tokens", type=int, default=256, metavar="N", help="of the answer at most (256)")
    parser.add_argument("--chat", action="store_true", help="the text is a message, which the model answers")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the likeliest token (0)")
    parser.add_argument("--top-p", type=float, default=1.0, metavar="P", help="only the likeliest tokens, up to P (1)")
    parser.add_argument("--top-k", type=int, default=0, metavar="K", help="only the K likeliest tokens (0: all)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (0)")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; may be given again")
    parser.add_argument("--device", default="auto", help="what computes, as `flowcompute devices` lists them")
    parser.set_defaults(act=_generate)


def _generate(options: argparse.Namespace) -> None:
    model = fc.models.load(options.model)
    prompt = sys.stdin.read() if options.prompt is None else options.prompt
    if options.chat:
        prompt = model.chat([{"role": "user", "content": prompt}])
    with model.generate(
        prompt,
        options.max_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        seed=options.seed,
        stop=options.stop,
        device=options.device,
    ) as said:
        for piece in said:
            print(piece, end="", flush=True)
    print()


def describe_model(path: str) -> str:
    """Describe a GGUF file in a few lines of text: its architecture, its metadata, and the types of its tensors."""
    weights = fc.weights(path)
    architecture = weights.metadata.get("general.architecture", "no architecture")
    types = Counter(weights.types[name] for name in weights)
    counts = ", ".join(f"{count} {kind}" for kind, count in types.most_common())
    lines = [path, f"  model   {architecture}", f"  tensors {len(weights)}: {counts}"]
    return "\n".join([*lines, *(f"  {key} = {_shown(value)}" for key, value in weights.metadata.items())])


def _shown(value: Any) -> str:
    if isinstance(value, str):
        text = repr(value)
        return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
    return str(value) if isinstance(value, bool | int | float) else f"{len(value):,} values"
