"""Kernel forms: what holds for every record of the table, and that each is of use."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.ir.capabilities import DeviceCapabilities
from flowcompute.ir.kernel import Kernel
from flowcompute.lower import forms
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.forms import FORMS, choose_form, form_of
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import CPU, GPU, GRAPHS, NVIDIA, PRECISIONS
from tests.gpu.oclgrind_families import FAMILIES
from tests.gpu.tensor_devices import plan_on_paper

FOLDER = Path(forms.__file__).parent
LARGE = replace(NVIDIA, max_work_group=1024, units=132)
DEVICES = (CPU, replace(CPU, lanes=8, vector_bytes=32), GPU, replace(GPU, max_work_group=128), LARGE)
KNOBS = [(form, device) for form in FORMS for device in DEVICES]


def called(value: Form | DeviceCapabilities | str) -> str:
    return value if isinstance(value, str) else value.name


def families() -> Iterator[tuple[str, Callable[[], list[Element]], DeviceCapabilities]]:
    for name, (make, capabilities) in GRAPHS.items():
        yield f"golden: {name}", make, capabilities
        yield f"golden: {name}", make, CPU
    for name, family in FAMILIES.items():
        for capabilities in (CPU, LARGE):
            yield name, lambda family=family: family(50), capabilities


@cache
def plans() -> dict[tuple[str, str], Plan]:
    return {
        (name, capabilities.name): plan_on_paper(
            *make(), capabilities=capabilities, precision=PRECISIONS.get(name.removeprefix("golden: "), "exact")
        )
        for name, make, capabilities in families()
    }


def kernels() -> list[Kernel]:
    return [kernel.ir for plan in plans().values() for kernel in plan.kernels]


def test_names_are_unique() -> None:
    assert len({form.name for form in FORMS}) == len(FORMS)


def records_of(path: Path) -> list[str]:
    """The names that a file gives to records of forms."""
    statements = ast.parse(path.read_text()).body
    assigned = [one for one in statements if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)]
    made = [one for one in assigned if isinstance(one.value.func, ast.Name) and one.value.func.id == "Form"]
    return [target.id for one in made for target in one.targets if isinstance(target, ast.Name)]


def test_each_record_stands_in_one_file_and_in_the_table() -> None:
    names = [name for path in FOLDER.rglob("*.py") for name in records_of(path)]
    assert len(set(names)) == len(names)
    assert {id(getattr(forms, name)) for name in names} == {id(form) for form in FORMS}


@pytest.mark.parametrize("form", FORMS, ids=called)
def test_a_record_is_plain_data(form: Form) -> None:
    assert pickle.loads(pickle.dumps(form)) == form
    assert hash(form) == hash(replace(form))


@pytest.mark.parametrize(("form", "capabilities"), KNOBS, ids=called)
def test_defaults_are_among_the_values(form: Form, capabilities: DeviceCapabilities) -> None:
    for knob in form.knobs.on(capabilities):
        assert knob.values
        assert knob.default is None or knob.default in knob.values


def test_each_kernel_names_a_form_and_has_its_knobs_or_none() -> None:
    assert len(kernels()) > len(GRAPHS)
    for kernel in kernels():
        form, having = form_of(kernel), set(kernel.knobs.plain()) - {"function_unroll"}
        own = {knob.name for knob in (*form.knobs.cpu, *form.knobs.gpu)}
        assert having <= own
        assert kernel.family == ((form.family or form.name) if having else "fixed")


def test_each_form_lowers_something() -> None:
    assert {kernel.form for kernel in kernels()} == {form.name for form in FORMS}


def test_forms_that_were_asked_before_say_why_not() -> None:
    plan = plan_on_paper(fc.source([[1.0, 2.0], [3.0, 4.0]]).sum(axis=1), capabilities=CPU)
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    form, reasons = choose_form(LoweringTask(plan.graph, step.region, KernelStyle(CPU), plan.folds, "k0"))
    assert form.name == "short rows"
    assert len(reasons) == FORMS.index(form)
    assert {reason.kind for reason in reasons} == {"form"}
    assert {reason.element for reason in reasons} == {step.region.name}
    assert "form at" in str(reasons[0])
    assert "its anchor is no attention" in str(reasons[0])
