"""An operation made again of other operands, by the rules that users' calls go through."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from flowcompute.checkpoint.job.attributes import decode_attrs, encode_attrs
from flowcompute.checkpoint.job.fields import Fields
from flowcompute.elements import RECORDS, Compute, Element, KeptOp
from flowcompute.errors import FlowError, SpecError
from flowcompute.spec import Spec


def made_again(element: Compute, inputs: Sequence[Element], spec: Spec) -> Compute:
    """Return an operation on other operands, which may be longer or shorter streams.

    Args:
        element: the operation.
        inputs: its new operands, of the dtypes and item shapes of its own ones.
        spec: of the result, for what operands and attributes do not say.

    Raises:
        SpecError: if it cannot be made of these; with the user's line.
    """
    op = element.op
    if RECORDS.get(op.kept_name) is not op or op.rebuild is None:
        made = copy.copy(element)
        made.freeze_fields(inputs=tuple(inputs), spec=spec, twin_of=None)
        return made
    try:
        attrs = Fields(decode_attrs(encode_attrs(element.attrs)), "attributes")
        made = op.rebuild(KeptOp(op, tuple(inputs), attrs, spec))
    except FlowError as error:
        raise _refused(element, error.expected, error.got, f"{error.message}") from error
    if (
        not isinstance(made, Compute)
        or made.op is not op
        or any(one is not other for one, other in zip(made.inputs, inputs, strict=True))
    ):
        raise _refused(element, f"{op.name} of {', '.join(str(one.spec) for one in inputs)}", str(made.spec))
    made.freeze_fields(
        site=element.site,
        call=element.call,
        is_step=element.is_step,
        name=element.name,
        pin=element.pin,
        again=element.again,
    )
    return made


def _refused(
    element: Compute, expected: str | None, got: str | None, why: str = "it would be another one"
) -> SpecError:
    return SpecError(
        f"cannot compute this of the records of a step: {why}",
        element=element.name or element.label,
        site=element.site,
        expected=expected,
        got=got,
        hint="a step computes the loss of its records as if they were the whole stream",
    )
