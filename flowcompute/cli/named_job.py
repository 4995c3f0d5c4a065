"""Jobs named on the command line as `module:job`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import sys
from typing import Any, NamedTuple

from flowcompute.elements import Element
from flowcompute.errors import SpecError

JOB_HELP = "module:name of an element, of a tuple or list of elements, or of a function that returns them"

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class JobName(NamedTuple):
    """Location of a job: a module, and a name in it."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def job_name(text: str) -> JobName:
    """Parse `module:job`. This is an argparse type.

    Raises:
        argparse.ArgumentTypeError: if it has another form.
    """
    module, _, name = text.partition(":")
    is_file = module.endswith(".py")
    if _NAME.fullmatch(module) and _NAME.fullmatch(name) and not is_file:
        return JobName(module, name)
    meant = module.removesuffix(".py").replace(os.sep, ".").strip(".")
    hint = f", perhaps {meant}:{name or 'job'}" if _NAME.fullmatch(f"{meant}.{name or 'job'}") else ""
    raise argparse.ArgumentTypeError(f"cannot read {text!r} as module:job{hint}")


def load_job(job: JobName) -> tuple[Element, ...]:
    """Return the elements of a job. Import its module, with the current folder on the path.

    Exceptions of the module itself are passed on.

    Raises:
        SpecError: if there is no such module or name, or it is not a job.
    """
    folder = os.getcwd()
    if folder not in sys.path:
        # The folder stays on the path, since the module may import others when the job runs.
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(job.module)
    except ModuleNotFoundError as error:
        # The module itself is there, and the error of the import that fails inside it says more.
        if error.name is None or not f"{job.module}.".startswith(f"{error.name}."):
            raise
        raise SpecError(
            f"cannot import {error.name!r}: there is no such module",
            element=str(job),
            expected=f"a module on Python's path or in {folder}",
            hint="go to the folder where the module is, or set PYTHONPATH",
        ) from None
    for part in job.name.split("."):
        if not hasattr(found, part):
            raise SpecError(
                f"cannot find {job.name!r} in {job.module}",
                element=str(job),
                expected=f"one of {', '.join(candidates)}" if (candidates := _candidates(found)) else None,
                hint=f"it must be {JOB_HELP.partition(' ')[2]}",
            )
        found = getattr(found, part)
    return _elements(job, found() if callable(found) and not isinstance(found, Element) else found)


def _candidates(module: object) -> list[str]:
    """Return the names in a module that are certainly jobs."""
    return [name for name, value in vars(module).items() if isinstance(value, Element)]


def _elements(job: JobName, found: object) -> tuple[Element, ...]:
    elements = tuple(found) if isinstance(found, tuple | list) else (found,)
    for element in elements:
        if not isinstance(element, Element):
            got = f"{type(element).__name__} among them" if isinstance(found, tuple | list) else type(found).__name__
            raise SpecError("cannot use this as a job", element=str(job), expected=JOB_HELP, got=got)
    if not elements:
        raise SpecError("cannot use this as a job", element=str(job), expected="at least one element", got="none")
    return elements
