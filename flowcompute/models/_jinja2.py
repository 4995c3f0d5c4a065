"""The one import of jinja2: a program that writes a chat by the template of a file, in a process of its own.

Templates come from files that nobody has checked. The sandbox of jinja2 keeps them from what is outside, but not from
loops for ever and numbers of a billion digits; the process ends those. It imports nothing of flowcompute.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import Any

try:
    import resource
except ImportError:
    # Windows has no such limits. What starts this process waits for a limited time only.
    resource = None  # type: ignore[assignment]
try:
    import jinja2.ext
    import jinja2.meta
    import jinja2.sandbox
except ImportError as missing:
    _problem: ImportError | None = missing
else:
    _problem = None

    class _Generation(jinja2.ext.Extension):
        """The tag `{% generation %}` around what a model is to say, which says nothing by itself."""

        tags = {"generation"}  # noqa: RUF012 - jinja2 asks for it so

        def parse(self, parser: Any) -> Any:
            """Return what stands in the block, with variables of its own."""
            line = next(parser.stream).lineno
            said = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(said, lineno=line)


MOST_CHARACTERS = 1 << 24
"""Characters of a prompt at most: as many as a model can have tokens."""


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Return what a template makes of values, or why it does not.

    Args:
        job: `template`, its `values`, the names of those that it has to read (`asked`), and `seconds` of the processor
            and `bytes` of memory that it may take.

    Returns:
        One of `text`, `problem` (jinja2 is not installed), `error` (the template fails) and `unread` (names of `asked`
        that it does not read, and those that it does).
    """
    if _problem is not None:
        return {"problem": str(_problem)}
    if resource is not None:
        for limit, most in (("RLIMIT_AS", job["bytes"]), ("RLIMIT_CPU", job["seconds"]), ("RLIMIT_FSIZE", 0)):
            # Some systems do not know one of them, or have a lower one.
            with contextlib.suppress(AttributeError, OSError, ValueError):
                kind = getattr(resource, limit)
                resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    # As in transformers, for which templates are written.
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.globals |= {"raise_exception": _refuse, "strftime_now": time.strftime}
    environment.filters["tojson"] = _json_text
    try:
        read = jinja2.meta.find_undeclared_variables(environment.parse(job["template"]))
        if unread := [name for name in job["asked"] if name not in read]:
            return {"unread": unread, "read": sorted(read)}
        text = environment.from_string(job["template"]).render(**job["values"])
    except _RefusalError as error:
        return {"error": f"the template says: {error}"[:500]}
    except Exception as error:  # noqa: BLE001 - templates call what they like, and it raises what it likes
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    if len(text) > MOST_CHARACTERS:
        return {"error": f"a prompt of {len(text)} characters"}
    return {"text": text}


class _RefusalError(ValueError):
    """Refusal of a chat by its template."""


def _refuse(message: str) -> None:
    raise _RefusalError(message)


def _json_text(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return a value as JSON; the filter of jinja2 would escape it for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.load(sys.stdin))))
