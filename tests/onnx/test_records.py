"""The records of operators against the schemas of onnx, and the page that lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import defs, helper

import flowcompute as fc
from flowcompute.onnx.operator_table import operator_table
from flowcompute.onnx.operators import LATEST, OPERATORS

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
SCHEMAS = {(one.domain, one.name): one for one in defs.get_all_schemas()}
LAST = {(one.domain, one.name): one for one in OPERATORS if one.until is None and one.domain != "com.microsoft"}


def plain(value: Any) -> Any:
    value = value.decode() if isinstance(value, bytes) else value
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("key", sorted(SCHEMAS), ids="/".join)
def test_each_schema_has_a_record_or_a_reason(key: tuple[str, str]) -> None:
    record, schema = LAST[key], SCHEMAS[key]
    if record.build is None and not record.by_definition:
        assert record.reason in fc.onnx.REASONS
        assert record.hint
        return
    assert schema.attributes.keys() <= record.attributes.keys()
    for name, attribute in schema.attributes.items():
        usual = plain(helper.get_attribute_value(attribute.default_value)) if attribute.default_value.name else None
        own = record.attributes[name]
        if usual is not None and name not in {"dtype", "seed"}:
            np.testing.assert_allclose(own, usual, rtol=1e-6) if isinstance(usual, float) else None
            assert isinstance(usual, float) or own == usual or not own, (name, own, usual)


def test_there_is_no_record_of_what_is_no_operator() -> None:
    # onnxruntime has one of its own in ONNX's domain.
    others = {("ai.onnx.preview.training", "Gradient"), ("", "SimplifiedLayerNormalization")}
    assert LAST.keys() <= SCHEMAS.keys() | others
    assert max(one.since_version for one in SCHEMAS.values() if one.domain == "") <= LATEST


def test_an_opset_has_one_record_of_an_operator() -> None:
    for domain, name in {(one.domain, one.name) for one in OPERATORS}:
        own = [one for one in OPERATORS if (one.domain, one.name) == (domain, name)]
        for opset in range(1, LATEST + 1):
            assert sum(one.covers(opset) for one in own) <= 1, (name, opset)


def test_the_page_lists_the_records() -> None:
    table = operator_table()
    assert table in PAGE.read_text(), f"docs/onnx.md is not this:\n{table}"
