"""The shape of the package: its public names, its files, and what importing it needs."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import flowcompute as fc
from flowcompute import api
from flowcompute.cli import main
from flowcompute.cli.command import command_parser
from flowcompute.cli.command import main as command_main

PACKAGE = Path(fc.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
OURS = sorted(
    path
    for room in ("flowcompute", "tests", "benchmarks", "examples")
    for path in (PACKAGE.parent / room).rglob("*.py")
)
LONGEST_FILE_LINES = 460
MOST_FILES = 15


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE.parent))


def names_imported(body: list[ast.stmt]) -> dict[str, str | None]:
    return {
        alias.asname or alias.name: f"flowcompute.{alias.name}" if node.module == "flowcompute" else node.module
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if not (alias.asname or alias.name).startswith("_") or alias.name == "__version__"
    }


def test_all_is_complete_and_importable() -> None:
    assert len(fc.__all__) == len(set(fc.__all__))
    door = ast.parse((PACKAGE / "__init__.py").read_text())
    (checked,) = (node for node in door.body if isinstance(node, ast.If))
    assert names_imported(checked.body) == api._LATE | {"*": "flowcompute.api"}
    imported = names_imported(ast.parse((PACKAGE / "api" / "__init__.py").read_text()).body).keys()
    assert not imported & api._LATE.keys()
    assert set(fc.__all__) == imported | api._LATE.keys()
    for name in fc.__all__:
        assert (getattr(fc, name) is None) == (name == "newaxis")


@pytest.mark.parametrize("name", sorted(set(fc.__all__) - {"e", "inf", "nan", "newaxis", "pi"}))
def test_public_name_is_documented(name: str) -> None:
    thing = getattr(fc, name)
    assert (inspect.getdoc(thing) or "").strip()
    if inspect.isclass(thing):
        members = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
        written_here = [
            key
            for key, value in members.items()
            if isinstance(value, property | classmethod) or getattr(value, "__qualname__", "") == f"{name}.{key}"
        ]
        assert [key for key in written_here if not inspect.getdoc(members[key])] == []


def test_no_public_function_bears_the_name_of_a_room() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {name for name in fc.__all__ if inspect.ismodule(getattr(fc, name)) is False} & rooms == set()


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_files_have_one_subject() -> None:
    # The public names are a list.
    files = [path for path in OURS if "programs" not in path.parts and path != PACKAGE / "api" / "__init__.py"]
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in files}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE_LINES} == {}


def test_a_folder_is_seen_at_a_glance() -> None:
    sizes = Counter(path.parent for path in FILES)
    assert {name_of(folder): size for folder, size in sizes.items() if size > MOST_FILES} == {}


def test_classes_and_files_have_names_of_their_own() -> None:
    """A name leads to one subject."""
    files = Counter(path.name for path in FILES if path.name != "__init__.py")
    classes = Counter(
        name for path in FILES for name in re.findall(r"^ *class (\w+)[(:]", path.read_text(), re.MULTILINE)
    )
    assert len(classes) > len(files)
    assert [name for name, count in (files + classes).items() if count > 1] == []


def late_imports(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_stand_at_the_top(path: Path) -> None:
    text = path.read_text()
    # An import of a function is indented, for scripts/check asks for lines of their own; few files have such lines.
    if re.search(r"^[ \t]+(import|from)\b", text, re.MULTILINE):
        assert list(late_imports(ast.parse(text))) == []


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_without_pyopencl_it_imports_and_computes_with_numpy_and_says_what_is_missing() -> None:
    done = python(
        "import sys; sys.modules['pyopencl'] = None\n"
        "import numpy as np, flowcompute as fc\n"
        "x = fc.source(np.arange(4, dtype=np.float32)) * 2\n"
        "print(x.resolve(device='numpy').tolist())\n"
        "try:\n"
        "    x.resolve()\n"
        "except fc.PlanError as error:\n"
        "    print(error)\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[0.0, 2.0, 4.0, 6.0]\n")
    assert "pip install pyopencl" in done.stdout


def test_importing_starts_nothing() -> None:
    """No thread, no device, no file: a library that is imported by mistake must cost nothing."""
    done = python(
        "import os, sys, threading, tempfile\n"
        "cache = tempfile.mkdtemp()\n"
        "os.environ['FLOWCOMPUTE_CACHE'] = os.path.join(cache, 'programs')\n"
        "import flowcompute.api\n"
        "print(threading.active_count(), os.listdir(cache), 'pytest' in sys.modules)\n"
        "os.rmdir(cache)\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 [] False\n"


def test_composing_loads_nothing_that_runs() -> None:
    """Neither drivers, event loops nor libraries of formats, which take longer to load than all that composes.

    Verbs lower, render and keep jobs by rooms that they load when they do so: plans that are kept need none.
    """
    done = python(
        "import sys, flowcompute as fc\n"
        "x = fc.arange(9).sum()\n"
        "fc.models.load\n"
        "heavy = {'asyncio', 'trio', 'pyopencl', 'rich', 'prometheus_client', 'flowcompute.flow', 'flowcompute.lower'}\n"
        "foreign = {'h5py', 'pyarrow', 'numcodecs', 'google_crc32c', 'obstore', 'http.client', 'jinja2'}\n"
        "print(sorted((heavy | foreign) & set(sys.modules)))\n"
        "import flowcompute.flow\n"
        "late = ('checkpoint', 'gpu.render', 'lower')\n"
        "print([name for name in late if f'flowcompute.{name}' in sys.modules], 'threadpoolctl' in sys.modules)\n"
        "print(x.resolve(device='numpy'), fc.resolve(x, device='numpy'), fc.Run.__name__, fc.Plan.__name__)\n"
        "print(sorted(heavy - set(sys.modules)))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n[] False\n36 36 Run Plan\n['asyncio', 'prometheus_client']\n"


def test_loading_a_model_imports_little_of_pythons_library() -> None:
    done = python(
        "import sys, numpy, tokenizers\n"
        "late = {'difflib', 'hashlib', 'html', 'logging', 'pathlib', 'secrets', 'subprocess', 'tempfile', 'urllib.parse'}\n"
        "late -= set(sys.modules)\n"
        "import flowcompute as fc\n"
        "fc.models.load\n"
        "print(sorted(late & set(sys.modules)))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_flows_of_plain_code_load_no_event_loop() -> None:
    """Until a run has stages, an event loop asks, or somebody wants progress or a port. Nor do they load runs."""
    done = python(
        "import sys, flowcompute as fc\n"
        "x = fc.feed(dtype='int32')\n"
        "with (x + 1).flow(device='numpy') as flow:\n"
        "    flow.send([1, 2])\n"
        "    print(flow.receive())\n"
        "loops = {'asyncio', 'trio', 'prometheus_client', 'rich.console', 'rich.progress'}\n"
        "loops |= {'flowcompute.runtime.run', 'flowcompute.runtime.tuning'}\n"
        "print(sorted(loops & set(sys.modules)))\n"
        "import asyncio, trio\n"
        "async def sent():\n"
        "    async with (x + 1).flow(device='numpy') as flow:\n"
        "        await flow.send([3])\n"
        "        return await flow.receive()\n"
        "print(asyncio.run(sent()), trio.run(sent))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2 3]\n[]\n[4] [4]\n"


@pytest.mark.parametrize("verb", ["run", "Run", "Plan", "thaw"])
def test_a_late_name_is_there_whichever_comes_first(verb: str) -> None:
    done = python(f"from flowcompute import {verb}, arange\nprint(arange(9).sum().resolve(device='numpy'))\n")
    assert (done.returncode, done.stdout) == (0, "36\n"), done.stderr


def test_rooms_are_loaded_without_the_public_names() -> None:
    done = python(
        "import sys\n"
        "from flowcompute import function_ir, elements\n"
        "import flowcompute as fc\n"
        "print(fc.function_ir is function_ir, fc.sinks.__name__, 'flowcompute.api' in sys.modules)\n"
        "print(fc.arange(3).sum().resolve(device='numpy'))\n"
    )
    assert (done.returncode, done.stdout) == (0, "True flowcompute.sinks False\n3\n"), done.stderr


def test_what_is_no_name_is_told_with_the_nearest() -> None:
    for name in ("sourc", "a.b", "", "..", "__wrapped__"):
        with pytest.raises(AttributeError, match="has no"):
            getattr(fc, name)
    with pytest.raises(AttributeError, match=r"did you mean fc\.source\?"):
        _ = fc.sourc


def test_only_public_names_are_completed() -> None:
    assert dir(fc) == sorted(fc.__all__)
    assert dir(fc.fft) == sorted(fc.fft.__all__)
    assert dir(fc.linalg) == sorted(fc.linalg.__all__)
    assert dir(fc.nn) == sorted(fc.nn.__all__)
    assert dir(fc.random) == sorted(fc.random.__all__)


def test_help_and_version_load_no_commands() -> None:
    """And say what the parser of all commands says."""
    done = python(
        "import contextlib, sys\n"
        "from flowcompute.cli import main\n"
        "for option in ('--help', '--version'):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        main([option])\n"
        "heavy = {'numpy', 'rich', 'trio', 'flowcompute.api', 'flowcompute.elements', 'flowcompute.cli.command'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{command_parser().format_help()}flowcompute {fc.__version__}\n[]\n"


@pytest.mark.parametrize("given", [[], ["--nonsense"], ["--traceback"], ["-"]])
def test_without_a_command_usage_is_told(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for run in (main, command_main):
        try:
            code: object = run(given)
        except SystemExit as ended:
            code = ended.code
        told.append((code, *capsys.readouterr()))
    assert told[0] == told[1]
    assert told[0][0] == 2
