"""Random programs over streams in shards: the bits and bytes of one run, or a refusal that names an element."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.distributed import ShardedJob
from flowcompute.elements import Element
from flowcompute.engine import PlannedJob
from tests.distributed.test_shards import planned
from tests.gpu.shapes import job_on_gpu, plan_for_gpu
from tests.properties.cases import cases
from tests.properties.stream_leaves import StreamProgram
from tests.properties.streams import FORMS, stream_programs
from tests.properties.test_stream_programs import strategies
from tests.support.slow import slow_but

OFTEN = ("window", "select", "scan", "section", "fold", "cut", "lag")


def saved(program: StreamProgram, folder: Path) -> list[Element]:
    """The roots, of which every other stream goes to a file; the rest is in memory."""
    folder.mkdir()
    return [
        root.element >> fc.save(folder / f"{i}.raw") if root.element.spec.is_stream and i % 2 == 0 else root.element
        for i, root in enumerate(program.roots)
    ]


def values_of(made: Any) -> list[bytes]:
    return [Path(one).read_bytes() if isinstance(one, str) else np.asarray(one).tobytes() for one in made]


def check_in_shards(program: StreamProgram, folder: Path, data: st.DataObject, device: str) -> bool:
    """Compare shards with one run; gives whether the program can be cut."""
    strategy = data.draw(strategies(program))
    many = saved(program, folder / "many")
    try:
        if device == "gpu":
            job: PlannedJob = job_on_gpu(plan_for_gpu(*many, strategy=strategy))
        else:
            job = planned(*many, device=device, strategy=strategy, memory=1 << 28)
        sharded = ShardedJob(job, data.draw(st.integers(1, 17), label="shards"))
    except fc.PlanError as error:
        assert "cannot cut the job into shards" in error.message, error
        assert error.element
        event(error.message)
        return False
    try:
        want = fc.run(*saved(program, folder / "one"), device="numpy" if device == "numpy" else "cpu", progress=False)
    except fc.FlowError as failure:
        with pytest.raises(type(failure)):
            sharded.run()
        return True
    assert values_of(sharded.run()) == values_of(want.values)
    event("in shards")
    return True


@pytest.mark.parametrize("form", slow_but(OFTEN, FORMS))
@cases(4)
@given(data=st.data())
def test_every_kind_of_operation_in_shards(form: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder), steps=3, first=form))
        check_in_shards(program, Path(folder), data, "numpy")


@cases(25)
@given(data=st.data())
def test_random_programs_in_shards(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder)))
        check_in_shards(program, Path(folder), data, "numpy")


@pytest.mark.parametrize("device", slow_but(("cpu",), ("cpu", "gpu")))
@cases(6)
@given(data=st.data())
def test_random_kernels_in_shards(device: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder), steps=4))
        check_in_shards(program, Path(folder), data, device)
