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
        stack = [(root, False)]
        while stack:
            one, expanded = stack.pop()
            if expanded:
                yield one
            elif one not in begun and one not in known:
                begun.add(one)
                stack.append((one, True))
                stack.extend([(operand, False) for operand in operands(one)][::-1])
