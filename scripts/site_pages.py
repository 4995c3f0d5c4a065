"""Pages of the documentation site that are made when it is built: lessons, reference, and those of the root.

A hook of MkDocs (`mkdocs.yml`). Links between files of the repository become links between pages of the site.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import flowcompute as fc
from flowcompute.elements import Function
from scripts.option_pages import commands_page, verbs_page

ROOT = Path(__file__).parents[1]

COPIED = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks/index.md",
}
"""Pages of the repository outside of `docs/`, and what they are on the site."""

REFERENCE = {
    "Verbs, runs and plans": ("flow", "thawing", "runtime", "schedule", "strategy"),
    "Sources and destinations": ("sources", "sinks"),
    "Elements": ("elements",),
    "Functions": ("elements.math", "elements.products", "elements.creation"),
    "Streams and items": ("elements.axes", "elements.search", "elements.streams", "elements.generated"),
    "Kernels of your own": ("elements.functions", "elements.functions.host_function"),
    "Gradients": ("gradients", "elements.creation.parameters"),
    "Model files": ("elements.quantized", "model_files"),
    "Errors": ("errors",),
}
"""Pages of the reference by the room that a name comes from; the longest room counts."""

MODULES = {
    "Linear algebra": "elements.linalg",
    "Fourier transforms": "elements.fft",
    "Neural networks": "elements.nn",
    "Language models": "models",
    "Training": "train",
    "Random numbers": "elements.random",
    "Contract suites": "testing.contracts",
}
"""Pages of the reference for whole modules."""

OPTIONS = {"Options of the verbs": verbs_page, "Command line": commands_page}
"""Pages of the reference that list options."""


def copied() -> dict[str, str]:
    """Return which file of the repository is which page of the site."""
    results = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("benchmarks/results/*.md")}
    lessons = {f"examples/{path.name}": f"lessons/{path.stem}.md" for path in ROOT.glob("examples/*.py")}
    return COPIED | {path: path for path in sorted(results)} | dict(sorted(lessons.items()))


def lesson(path: str) -> tuple[str, str]:
    """Return the title and the page of a lesson: what its docstring says, then its code."""
    text = (ROOT / path).read_text()
    said = ast.get_docstring(ast.parse(text)) or ""
    title, _, rest = said.partition("\n\n")
    code = text.split('"""', maxsplit=2)[2].strip()
    title = " ".join(title.split())
    number, _, name = Path(path).stem.partition("_")
    return (
        title,
        f"# {int(number)}. {name.replace('_', ' ').capitalize()}\n\n{title}\n\n{rest}\n\n```python\n{code}\n```\n",
    )


def references() -> Iterator[tuple[str, str]]:
    """Yield the title and text of each page of the reference.

    Raises:
        ValueError: if a public name belongs to no page.
    """
    pages: dict[str, list[str]] = {title: [] for title in REFERENCE}
    for name in fc.__all__:
        value = getattr(fc, name)
        if (
            name.startswith("__")
            or not hasattr(value, "__doc__")
            or type(value).__name__ in ("module", "float", "NoneType")
        ):
            continue
        room = "elements.math" if isinstance(value, Function) else value.__module__.removeprefix("flowcompute.")
        rooms = [(each, title) for title, known in REFERENCE.items() for each in known]
        fits = [(len(each), title) for each, title in rooms if f"{room}.".startswith(f"{each}.")]
        if not fits:
            raise ValueError(f"cannot place fc.{name}: got {room}, expected a room of REFERENCE; add it there")
        pages[max(fits)[1]].append(name)
    for title, names in pages.items():
        element_wise = [name for name in names if isinstance(getattr(fc, name), Function)]
        text = f"# {title}\n\n"
        if element_wise:
            text += (
                "## Element-wise functions\nErrors are in ulp (units in the last place); 0 is correctly rounded.\n\n"
            )
            text += "| function | error | result |\n|---|---|---|\n" + "".join(map(_row, element_wise)) + "\n"
        yield title, text + "".join(f"::: flowcompute.{name}\n\n" for name in names if name not in element_wise)
    for title, module in MODULES.items():
        yield title, f"# {title}\n\n{_module(module)}"
    for title, page in OPTIONS.items():
        yield title, page()


def _module(module: str) -> str:
    options = "    options: {show_root_heading: false, show_root_toc_entry: false}\n"
    if module.startswith("testing"):
        return f"::: flowcompute.{module}\n{options}"
    name = module.rsplit(".", maxsplit=1)[-1]
    public = getattr(fc, name)
    names = [each for each in getattr(public, "__all__", dir(public)) if callable(getattr(public, each))]
    rows = "".join(_row(each, public, f"fc.{name}.") for each in names if isinstance(getattr(public, each), Function))
    table = f"| function | error | result |\n|---|---|---|\n{rows}\n" if rows else ""
    values = [getattr(public, each) for each in names]
    defined = [value for value in values if isinstance(value, type) or type(value).__name__ == "function"]
    return table + "".join(f"::: {value.__module__}.{value.__name__}\n\n" for value in defined)


def _row(name: str, module: Any = fc, prefix: str = "fc.") -> str:
    function = getattr(module, name)
    said = (function.__doc__ or "").split("\n")[0].replace("|", "\\|")
    said = said.removesuffix(" Element-wise; operands broadcast and promote as NumPy's.")
    return f"| `{prefix}{name}` | {function.op.ulp:g} | {said} |\n"


def slug(title: str) -> str:
    """Return the file of a page of the reference."""
    return f"reference/{title.lower().replace(',', '').replace(' ', '-')}.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages that are made in the navigation."""
    nav = {next(iter(part)): next(iter(part.values())) for part in config.nav or ()}
    made = copied()
    nav["Lessons"] += [made[path] for path in made if path.startswith("examples/")]
    nav["Reference"] += [slug(title) for title in (*REFERENCE, *MODULES, *OPTIONS)]
    nav["Benchmarks"] += [page for page in made.values() if page.startswith("benchmarks/results/")]
    nav["Decisions"] += [f"decisions/{path.name}" for path in sorted(ROOT.glob("docs/decisions/0*.md"))]
    config.nav = [{title: pages} for title, pages in nav.items()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs/`."""
    rows = []
    for path, page in copied().items():
        if path.startswith("examples/"):
            title, text = lesson(path)
            rows.append(f"| [{Path(path).stem}]({Path(page).name}) | {title} |\n")
        else:
            text = (ROOT / path).read_text()
        files.append(File.generated(config, page, content=text))
    index = "# Lessons\nEach lesson is a program of at most forty lines that checks itself.\n\n"
    table = "| lesson | about |\n|---|---|\n" + "".join(rows)
    files.append(File.generated(config, "lessons/index.md", content=index + table))
    for title, text in references():
        files.append(File.generated(config, slug(title), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links to files of the repository lead to pages of the site, or to nothing where it has none."""
    made = copied()
    here = {target: source for source, target in made.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if page.file.src_uri.startswith(("lessons/", "reference/")):
        return markdown

    def moved(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        if not (ROOT / path).exists():
            return link[0]
        if path == "examples":
            site = "lessons/index.md"
        elif path.startswith("docs/"):
            site = path.removeprefix("docs/")
        elif path in made:
            site = made[path]
        else:
            return text
        return f"[{text}]({os.path.relpath(site, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"

    return re.sub(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)", moved, markdown)
