"""Print measures of the package's structure: python scripts/structure.py [folder of a checkout]."""

from __future__ import annotations

import ast
import collections
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path


def modules(root: Path) -> dict[str, Path]:
    """Return the package's files by dotted name."""
    found = {}
    for path in sorted((root / "flowcompute").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, names: dict[str, Path], *, annotations: bool) -> set[str]:
    """Return the files of the package that a file imports; with `annotations` those under TYPE_CHECKING too."""
    skipped = set()
    for node in ast.walk(tree):
        if not annotations and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped |= {id(inner) for inner in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in names and id(node) not in skipped:
            found |= {name if (name := f"{node.module}.{one.name}") in names else node.module for one in node.names}
    return found


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected sets of more than one file (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in edges:
        if node not in index:
            visit(node)
    return [one for one in found if len(one) > 1]


def late_imports(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the imports that stand inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom))


def main(root: Path) -> None:
    """Print the measures of one checkout."""
    sys.setrecursionlimit(10_000)
    names = modules(root)
    trees = {name: ast.parse(path.read_text()) for name, path in names.items()}
    lines = {name: len(path.read_text().splitlines()) for name, path in names.items()}
    folders = collections.Counter(path.parent.relative_to(root) for path in names.values())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]
    classes = collections.Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    print(
        f"files {len(names)}, lines {sum(lines.values())}, docstring words {sum(len(text.split()) for text in texts)}"
    )
    print(f"lines of a file: median {statistics.median(lines.values()):.0f}, largest {max(lines.values())}")
    largest, count = folders.most_common(1)[0]
    full = sum(number > 15 for number in folders.values())
    print(f"files of a folder: largest {count} ({largest}), folders of more than 15: {full}")
    for words, typed in (("without", False), ("with", True)):
        edges = {name: imported(tree, names, annotations=typed) - {name} for name, tree in trees.items()}
        sizes = [len(one) for one in cycles(edges)]
        print(f"import cycles {words} annotations: {len(sizes)} {sizes}")
    print(f"late imports: {sum(len(list(late_imports(tree))) for tree in trees.values())}")
    print(f"class names that stand more than once: {sum(count > 1 for count in classes.values())}")
    files = collections.Counter(path.name for path in names.values() if path.name != "__init__.py")
    print(f"file names that stand more than once: {sum(count > 1 for count in files.values())}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
