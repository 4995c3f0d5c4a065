"""Jobs named on the command line as `module:job`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from flowcompute.cli.show_error import user_line
from flowcompute.elements import Element, user_site
from flowcompute.errors import FlowError, RunError, SpecError

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

    Raises:
        SpecError: if there is no such module or name, or it is not a job.
        RunError: in place of an exception of the module, or of the function, which becomes its cause.
        FlowError: whatever they raise of the family.
    """
    folder = os.getcwd()
    if folder not in sys.path:
        # The folder stays on the path, since the module may import others when the job runs.
        sys.path.insert(0, folder)
    try:
        with _loading(job):
            found: Any = importlib.import_module(job.module)
    except ModuleNotFoundError as error:
        raise SpecError(
            f"cannot import {error.name!r}: there is no such module",
            element=str(job),
            site=user_site(),
            expected=f"a module on Python's path or in {folder}",
            hint="go to the folder where the module is, or set PYTHONPATH",
        ) from None
    for part in job.name.split("."):
        if not hasattr(found, part):
            raise SpecError(
                f"cannot find {job.name!r} in {job.module}",
                element=str(job),
                site=user_site(),
                expected=f"one of {', '.join(candidates)}" if (candidates := _candidates(found)) else None,
                hint=f"it must be {JOB_HELP.partition(' ')[2]}",
            )
        found = getattr(found, part)
    if callable(found) and not isinstance(found, Element):
        with _loading(job):
            found = found()
    return _elements(job, found)


@contextlib.contextmanager
def _loading(job: JobName) -> Iterator[None]:
    """Have exceptions of the user's module name the user's line. One that says that there is no module is passed on.

    Raises:
        RunError: in place of any other exception that is none of the family.
    """
    try:
        yield
    except FlowError:
        raise
    except Exception as error:
        # Where the module itself is there, the error of the import that fails inside it says more.
        if isinstance(error, ModuleNotFoundError) and f"{job.module}.".startswith(f"{error.name}."):
            raise
        raise RunError(
            f"cannot load the job: {type(error).__name__}: {error}", element=str(job), site=user_line(error)
        ) from error


def _candidates(module: object) -> list[str]:
    """Return the names in a module that are certainly jobs."""
    return [name for name, value in vars(module).items() if isinstance(value, Element)]


def _elements(job: JobName, found: object) -> tuple[Element, ...]:
    elements = tuple(found) if isinstance(found, tuple | list) else (found,)
    for element in elements:
        if not isinstance(element, Element):
            got = f"{type(element).__name__} among them" if isinstance(found, tuple | list) else type(found).__name__
            raise _no_job(job, JOB_HELP, got)
    if not elements:
        raise _no_job(job, "at least one element", "none")
    return elements


def _no_job(job: JobName, expected: str, got: str) -> SpecError:
    return SpecError("cannot use this as a job", element=str(job), site=user_site(), expected=expected, got=got)
