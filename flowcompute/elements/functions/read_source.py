"""The source of a user's function as a syntax tree, and errors that point into it."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from flowcompute.errors import KernelError, Site
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class FunctionSource:
    """A user's function, read."""

    function: Callable[..., Any]
    name: str
    file: str
    first_line: int
    tree: ast.FunctionDef

    def error(
        self,
        node: ast.AST,
        message: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> KernelError:
        """Return the error for a part of the function, with its line."""
        line = self.first_line + getattr(node, "lineno", 1) - 1
        return KernelError(
            message, element=self.name, site=Site(self.file, line), expected=expected, got=got, hint=hint
        )

    def text(self, node: ast.AST) -> str:
        """Return a part of the function as Python."""
        text = ast.unparse(node).split("\n", 1)[0]
        return text if len(text) <= 60 else text[:57] + "..."

    def outside(self, node: ast.expr) -> Any:
        """Return what a name, or a name in a module, means outside the function, now.

        Raises:
            KernelError: if it means nothing.
        """
        if isinstance(node, ast.Attribute):
            names = self.function.__code__.co_varnames
            local = isinstance(node.value, ast.Name) and node.value.id in names
            owner = None if local else self.outside(node.value)
            if not inspect.ismodule(owner):
                raise self.error(
                    node,
                    f"cannot read {self.text(node)}: only attributes of modules are known in a kernel",
                    hint="give the number a name of its own outside the kernel, or pass it as an argument",
                )
            if not hasattr(owner, node.attr):
                raise self.error(node, f"cannot find {self.text(node)}")
            return getattr(owner, node.attr)
        if not isinstance(node, ast.Name):
            raise self.error(node, f"cannot call or read {self.text(node)}")
        code = self.function.__code__
        if node.id in code.co_freevars:
            assert self.function.__closure__ is not None
            cell = self.function.__closure__[code.co_freevars.index(node.id)]
            try:
                return cell.cell_contents
            except ValueError:
                raise self.error(
                    node, f"cannot use {node.id!r}, which has no value yet where the kernel is used"
                ) from None
        if node.id in self.function.__globals__:
            return self.function.__globals__[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise self.error(node, f"cannot find {node.id!r}", expected="a local variable, or a number outside")


def read_source(function: Callable[..., Any]) -> FunctionSource:
    """Read a function's source.

    Raises:
        KernelError: if it is no plain Python function, or its source is not to be had.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not inspect.isfunction(function):
        raise KernelError("cannot make a kernel of what is no plain Python function", element=name, got=repr(function))
    code = function.__code__
    site = Site(code.co_filename, code.co_firstlineno)
    if code.co_name == "<lambda>":
        raise KernelError(
            "cannot make a kernel of a function that is not written with `def`",
            element=name,
            site=site,
            got="a lambda",
            hint="write it as `def f(x): return ...`",
        )
    try:
        lines, first = inspect.getsourcelines(function)
        parsed = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, IndentationError):
        raise KernelError(
            "cannot read the source of this function",
            element=name,
            site=site,
            expected="a function in a file, or in a notebook's cell",
            hint="put it into a .py file: text given to exec() or to a bare prompt is not kept by Python",
        ) from None
    tree = parsed.body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise KernelError(
            "cannot make a kernel of a function that is not written with `def`",
            element=name,
            site=site,
            got="an async function" if isinstance(tree, ast.AsyncFunctionDef) else type(tree).__name__,
        )
    return FunctionSource(function, tree.name, code.co_filename, max(first, 1), tree)


def check_parameters(source: FunctionSource) -> tuple[str, ...]:
    """Return the names of the parameters.

    Raises:
        KernelError: for anything but plain parameters.
    """
    arguments = source.tree.args
    for extra, what in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if extra is not None:
            raise source.error(
                source.tree,
                f"cannot take {what}{extra.arg}",
                expected="a fixed number of parameters",
                hint="name each one",
            )
    if arguments.defaults or any(arguments.kw_defaults):
        raise source.error(
            source.tree,
            "cannot take default values",
            expected="parameters without defaults",
            hint="pass every argument",
        )
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args))


def assigned_names(tree: ast.FunctionDef) -> set[str]:
    """Return names that the function's own statements set."""
    return {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    }
