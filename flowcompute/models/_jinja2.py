"""The one import of jinja2, which is needed for chats alone. Without it the first chat says what to install."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowcompute.errors import SourceError
from flowcompute.imports import LateModule, import_problem

if TYPE_CHECKING:
    import jinja2
    from jinja2 import sandbox
else:
    jinja2, sandbox = map(LateModule, ("jinja2", "jinja2.sandbox"))


def rendered(template: str, path: str, **values: Any) -> str:
    """Return what a template of a file makes of values. It is not trusted: it sees nothing else, and changes nothing.

    Raises:
        SourceError: where jinja2 is not installed, or the template fails.
    """
    problem = import_problem("jinja2", "jinja2.sandbox")
    if problem is not None:
        raise SourceError(
            "cannot make a prompt of a chat: jinja2 is not installed",
            element="models",
            got=str(problem),
            hint="run pip install 'flowcompute[models]'",
        ) from problem
    environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    try:
        text: str = environment.from_string(template).render(**values)
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SourceError("cannot write the chat by the file's template", element=path, got=str(error)[:500]) from error
    return text


def _refuse(message: str) -> None:
    raise ValueError(message)
