"""Every function of the namespace with hostile arguments: what is wrong is refused as a FlowError."""

from __future__ import annotations

import inspect
import operator
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
import flowcompute.array_api as xp
from tests.array_api.signatures import SIGNATURES
from tests.hostile.calls import HOSTILE, HOSTILE_LAZY
from tests.hostile.test_arguments import bounded, outcome, told

__all__ = ["bounded"]

ROWS = xp.asarray(fc.source(np.arange(24.0).reshape(6, 4)))
WHOLE = xp.asarray(fc.source(np.arange(24).reshape(6, 4)))
MATRIX = xp.asarray(np.eye(3) + 1)
VECTOR = xp.asarray(np.arange(3.0))

SOUND: dict[str, Any] = {
    "x": ROWS, "x1": ROWS, "x2": ROWS, "arrays": [ROWS, ROWS], "condition": ROWS > 3, "shape": (6, 4), "obj": [1.0, 2.0],
    "start": 0, "stop": 5, "num": 5, "n_rows": 3, "fill_value": 2, "indices": xp.asarray([1, 0]), "axes": (0, 1), "n": 2,
    "source": 1, "destination": 1, "shift": 1, "repetitions": (1, 2), "repeats": 2, "dtype": xp.float32,
    "kind": "bool", "type": xp.float32, "from_": xp.int8, "to": xp.int16, "arrays_and_dtypes": [xp.int8, xp.int16],
}  # fmt: skip
"""Sound arguments by their names in the standard."""

OF: dict[str, dict[str, Any]] = {
    **{name: {"x": MATRIX} for name in SIGNATURES if name.startswith("linalg.")},
    **{name: {"x1": MATRIX, "x2": MATRIX} for name in ("matmul", "linalg.matmul", "linalg.solve", "linalg.cross")},
    **{name: {"x1": WHOLE, "x2": WHOLE} for name in SIGNATURES if name.startswith("bitwise_")},
    **{name: {"x": xp.astype(WHOLE, xp.int8)} for name in ("unique_values", "unique_counts", "bitwise_invert")},
    "tensordot": {"x1": MATRIX, "x2": MATRIX},
    "linalg.tensordot": {"x1": MATRIX, "x2": MATRIX},
    "linalg.outer": {"x1": VECTOR, "x2": VECTOR},
    "searchsorted": {"x1": VECTOR, "x2": ROWS},
    "meshgrid": {"arrays": [VECTOR, VECTOR]},
    "take": {"axis": 1},
    "take_along_axis": {"indices": xp.argsort(ROWS)},
    "squeeze": {"x": ROWS[:, :1], "axis": 1},
    "expand_dims": {"axis": 1},
    "flip": {"axis": 1},
    "roll": {"axis": 1},
    "unstack": {"axis": 1},
    "stack": {"axis": 1},
    "iinfo": {"type": xp.int8},
    "from_dlpack": {"x": np.ones(3)},
    "cumulative_sum": {"axis": 1},
    "cumulative_prod": {"axis": 1},
}
_ALIKE = {name for name, entry in xp.COVERAGE.items() if entry.section == "Element-wise functions"}
NAMES = [name for name in SIGNATURES if xp.COVERAGE[name].state == "there"]
TRIED = [name for name in NAMES if name not in _ALIKE or name in ("abs", "add", "bitwise_and", "clip", "pow", "real")]
"""Functions whose arguments are read by code of their own, or for many others."""

ARRAYS = [xp.asarray(one) for one in HOSTILE if isinstance(one, fc.Element) and hasattr(one, "spec")] + [ROWS.T]


def sound(name: str) -> tuple[Any, dict[str, Any]]:
    """A function, and sound arguments of it by name, all defaults among them."""
    function: Any = xp
    for part in name.split("."):
        function = getattr(function, part)
    parameters = inspect.signature(function).parameters.values()
    given = {one.name: SOUND.get(one.name) if one.default is one.empty else one.default for one in parameters}
    return function, given | OF.get(name, {})


def call(function: Any, arguments: dict[str, Any]) -> Any:
    """Call it by place and by name, as its signature says."""
    places, names = [], {}
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            given = arguments[one.name]
            places += given if isinstance(given, list | tuple) else [given]
        elif one.kind is one.KEYWORD_ONLY:
            names[one.name] = arguments[one.name]
        else:
            places.append(arguments[one.name])
    return function(*places, **names)


@pytest.mark.parametrize("name", NAMES)
def test_the_sound_calls_are_sound(name: str) -> None:
    assert call(*sound(name)) is not None


@pytest.mark.parametrize("name", TRIED)
def test_each_argument_is_hostile(name: str) -> None:
    function, arguments = sound(name)
    found = []
    for key in arguments:
        for value in [*HOSTILE, *(make() for make in HOSTILE_LAZY), *ARRAYS]:
            error = outcome(lambda: call(function, {**arguments, key: value}))  # noqa: B023
            # What is no array of another library is told by Python and NumPy.
            if error is not None and not (name == "from_dlpack" and isinstance(error, AttributeError | BufferError)):
                found.append(told(name, key, value, error))
    assert found == []


@pytest.mark.parametrize("form", ["resident", "stream", "transposed", "number"])
def test_keys_and_assigned_values_are_hostile(form: str) -> None:
    makes = {"resident": MATRIX, "stream": ROWS, "transposed": ROWS.T, "number": xp.asarray(2.0)}
    found = []
    for value in [*HOSTILE, *(make() for make in HOSTILE_LAZY), *ARRAYS]:
        x = xp.asarray(makes[form], copy=True)
        for what, tried in (
            ("x[key]", lambda: x[value]),  # noqa: B023
            ("x[:, key]", lambda: x[:, value]),  # noqa: B023
            ("x[key] = 0", lambda: x.__setitem__(value, 0)),  # noqa: B023
            ("x[..., key] = 0", lambda: x.__setitem__((..., value), 0)),  # noqa: B023
            ("x[...] = value", lambda: x.__setitem__(..., value)),  # noqa: B023
            ("to_device", lambda: x.to_device(value)),  # noqa: B023
            ("namespace", lambda: x.__array_namespace__(api_version=value)),  # noqa: B023
        ):
            error = outcome(tried)
            if error is not None:
                found.append(told(what, "value", value, error))
    assert found == []


def test_operands_are_hostile() -> None:
    """Operators leave what they do not know to Python, which says so by a TypeError."""
    for value in [*HOSTILE, *ARRAYS]:
        for function in (operator.add, operator.mod, operator.lt, operator.matmul, operator.eq):
            for operands in ((ROWS, value), (value, ROWS)):
                error = outcome(lambda: function(*operands))  # noqa: B023
                assert error is None or isinstance(error, TypeError), told(function.__name__, "operand", value, error)
