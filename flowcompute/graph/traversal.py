"""Traversal of what depends on what. It is iterative, since graphs may be deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def postorder(roots: Iterable[K], operands: Callable[[K], Iterable[K]], known: Container[K] = ()) -> Iterator[K]:
    """Yield the roots and all that they depend on, each once and after its operands.

    Args:
        roots: where to begin.
        operands: returns the operands of one; it is called once for each, before any of them is yielded.
        known: what is not visited. It may grow by what is yielded, such as a table of results.
    """
    begun: set[K] = set()
    for root in roots:
        todo: list[K | None] = [root]
        open_: list[K] = []
        while todo:
            one = todo.pop()
            if one is None:
                # All operands of the one that was opened last are done.
                yield open_.pop()
            elif one not in begun and one not in known:
                begun.add(one)
                # What was begun is done by now, since nothing depends on itself.
                below = [operand for operand in operands(one) if operand not in begun]
                if not below:
                    yield one
                    continue
                open_.append(one)
                todo.append(None)
                todo.extend(reversed(below))
