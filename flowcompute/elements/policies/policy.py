"""The policy for records at which a user's own code fails: `on_error=`."""

from __future__ import annotations

import os
from typing import Any, Literal, get_args

from flowcompute.elements.arguments import one_of
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.files import FILES, Files, path_text
from flowcompute.imports import dataclass

OnError = Literal["raise", "skip", "dead_letter"]


@dataclass(frozen=True, eq=False)
class ErrorPolicy:
    """The policy of an element for records that fail. Compared by identity: it stands for its element.

    Attributes:
        on_error: "raise" fails the run, "skip" drops the record and counts it, "dead_letter"
            also writes it down.
        path: absolute path of the dead-letter file; None without one.
        files: the file layer that it is written with.
        allow: where a checkpoint named the file, folders whose files may be replaced; None where the user named it.
    """

    on_error: OnError = "raise"
    path: str | None = None
    files: Files = FILES
    allow: tuple[str, ...] | None = None

    @property
    def drops(self) -> bool:
        """True where records that fail are dropped."""
        return self.on_error != "raise"


def parse_policy(on_error: Any, dead_letter: Any, element: str) -> ErrorPolicy:
    """Parse `on_error=` and `dead_letter=` of an element.

    Raises:
        SpecError: for another word, a path that no file can have, or one of the two without the other.
    """
    on_error = one_of(element, "on_error", on_error, get_args(OnError))
    if (on_error == "dead_letter") != (dead_letter is not None):
        raise SpecError(
            "cannot take one of on_error='dead_letter' and dead_letter=path alone",
            element=element,
            site=user_site(),
            expected="both, or neither",
            got=f"on_error={on_error!r}, dead_letter={short_repr(dead_letter)}",
            hint="on_error='dead_letter', dead_letter='failed.jsonl' names the file that failed records are written to",
        )
    return ErrorPolicy(on_error, None if dead_letter is None else _target(dead_letter, element))


def _target(path: Any, element: str) -> str:
    try:
        text = path_text(path)
    except ValueError:
        text = ""
    if not os.path.basename(text):
        raise SpecError(
            "cannot name a file so",
            element=element,
            site=user_site(),
            expected="a str or os.PathLike that ends in a file name",
            got=short_repr(path),
        )
    return os.path.abspath(text)
