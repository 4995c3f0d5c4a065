"""Every row of the tables of equivalents is run, and both sides give the same values."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc

PAGE = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text()
LIBRARIES = {"NumPy": "numpy", "pandas": "pandas", "Dask": "dask.array", "PyTorch": "torch"}


def rows() -> list[tuple[str, str, str]]:
    """Library, its code and ours."""
    found, library = [], ""
    for line in PAGE.splitlines():
        if heading := re.fullmatch(r"## (\w+)", line):
            library = heading[1]
        elif row := re.fullmatch(r"\| `(.+)` \| `(.+)` \|", line):
            found.append((library, row[1], row[2]))
    return found


def test_every_library_has_rows_and_no_row_is_left_out() -> None:
    assert {library for library, _, _ in rows()} == set(LIBRARIES)
    assert len(rows()) == sum(line.startswith("| `") for line in PAGE.splitlines())


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("pages")
    code = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    given: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(code, given)
    given["folder"] = folder
    return given


def values(result: Any) -> list[np.ndarray]:
    """Arrays of any library, or of several results."""
    if isinstance(result, fc.Element):
        result = result.resolve(progress=False)
    if isinstance(result, tuple):
        return [array for one in result for array in values(one)]
    if hasattr(result, "compute"):
        result = result.compute()
    return [np.asarray(result)]


@pytest.mark.parametrize(("library", "theirs", "ours"), rows())
def test_both_sides_give_the_same(
    names: dict[str, Any], library: str, theirs: str, ours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(names["folder"])
    got = values(eval(ours, dict(names)))
    given = dict(names)
    try:
        module = importlib.import_module(LIBRARIES[library])
    except ImportError:
        assert all(np.isfinite(array).all() for array in got)
        return
    if library == "Dask":
        given |= {"dask": importlib.import_module("dask"), "da": module}
        given["d"] = module.from_array(given["a"], chunks=(100, 8))
    elif library == "pandas":
        frame = module.DataFrame(given["a"], columns=list("abcdefgh"))
        given |= {"pd": module, "df": frame.assign(key=given["a"].argmax(axis=1))}
    elif library == "PyTorch":
        importlib.import_module("torch.utils.data")
        given |= {"torch": module, "t": module.from_numpy(given["a"])}
    wanted = values(eval(theirs, given))
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype or library != "NumPy" or one.dtype.kind == other.dtype.kind
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
