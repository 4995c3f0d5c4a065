"""Operations as data: by the name of their record, or as elements of a class of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.checkpoint.job.attributes import decode_attrs, encode_attrs
from flowcompute.checkpoint.job.fields import Fields, refuse
from flowcompute.checkpoint.job.fingerprint import function_digest
from flowcompute.checkpoint.job.parts.kept_sources import describe_policy, read_policy
from flowcompute.checkpoint.job.parts.part import Describing, KeptNode, Part, Rebuilding
from flowcompute.elements import RECORDS, Compute, Element, HostFunction, KeptOp, Op, broadcast, host
from flowcompute.elements.functions import SourceOp, UserOp, opencl, user_op
from flowcompute.elements.random import SEED_BITS, Random
from flowcompute.elements.streams import KernelScan, ScanFunction, kernel_scan, scan
from flowcompute.spec import Spec

# -- operations of the tables ------------------------------------------------------------------------


def _describe_compute(element: Compute, _: Describing) -> dict[str, Any]:
    name = element.op.kept_name
    if RECORDS.get(name) is not element.op:
        refuse(
            f"cannot keep the operation {element.op.name} in a checkpoint",
            expected="an operation of the package",
            got=name,
        )
    return {"op": name, "attrs": encode_attrs(element.attrs)}


def _rebuild_compute(fields: Fields, node: KeptNode, _: Rebuilding) -> Compute:
    op = RECORDS[fields.choice("op", tuple(RECORDS))]
    attrs = decode_attrs(fields.take("attrs"))
    taken = Fields(attrs, "attributes")
    assert op.rebuild is not None
    made = op.rebuild(KeptOp(op, node.inputs, taken, node.spec))
    taken.close()
    same = isinstance(made, Compute) and made.op is op and len(made.inputs) == len(node.inputs)
    if not same or any(one is not other for one, other in zip(made.inputs, node.inputs, strict=True)):
        refuse(
            "cannot make the operation again of these operands",
            expected=f"{op.kept_name} of the operands as they are",
            got=repr(made),
        )
    if repr(sorted(made.attrs.items())) != repr(sorted(attrs.items())):
        refuse("cannot make the operation again with these attributes", expected=str(made.attrs), got=attrs)
    return Compute(op, node.inputs, made.spec, made.attrs, node.given)


def _describe_random(element: Random, describing: Describing) -> dict[str, Any]:
    kept = _describe_compute(element, describing)
    return {**kept, "distribution": element.distribution, "seed": element.seed}


def _rebuild_random(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    distribution = fields.choice("distribution", ("uniform", "normal", "integers"))
    seed = fields.whole("seed", most=(1 << SEED_BITS) - 1)
    return Random.of(_rebuild_compute(fields, node, rebuilding), distribution, seed)


# -- functions of users ------------------------------------------------------------------------------


def _describe_kernel(element: Compute, describing: Describing) -> dict[str, Any]:
    op = element.op
    assert isinstance(op, UserOp)
    digest = op.function.digest
    describing.kernels[digest] = op.function
    return {"kernel": digest, "result": op.result}


def _kept_kernel(fields: Fields, rebuilding: Rebuilding) -> ir.TypedFunction:
    digest = fields.text("kernel")
    function = rebuilding.kernels.get(digest)
    if function is None:
        refuse("cannot find the function of this kernel", got=digest)
    return function


def _rebuild_kernel(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    function = _kept_kernel(fields, rebuilding)
    digest = function.digest
    result = fields.whole("result", most=len(function.results) - 1)
    given = [one.dtype.name for one in node.inputs]
    if given != list(function.parameters):
        refuse("cannot call a kernel with operands of other dtypes", expected=", ".join(function.parameters), got=given)
    dtype = ir.stored(function.results[result])
    return _broadcast(user_op(function, result, ""), node, {"function": digest, "result": result}, dtype)


def _broadcast(op: Op, node: KeptNode, attrs: dict[str, Any], dtype: np.dtype) -> Compute:
    """Return an element-wise Compute of operands that are aligned already."""
    if not node.inputs:
        refuse("cannot make an operation again without operands", expected="at least one operand")
    aligned, shape, stream = broadcast(op.name, list(node.inputs))
    if any(one is not other for one, other in zip(aligned, node.inputs, strict=True)):
        refuse("cannot align the operands again", expected="operands that are aligned already")
    return Compute(op, node.inputs, Spec(dtype, shape, stream), attrs, node.given)


def _describe_opencl(element: Compute, _: Describing) -> dict[str, Any]:
    return {"bind": "text", "text": element.attrs["source"], "entry": element.op.name}


def _rebuild_opencl(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    digest, entry = fields.text("text"), fields.text("entry")
    made = opencl(node.bound, *node.inputs, dtype=node.spec.dtype, name=node.given)
    if made.attrs["source"] != digest or made.op.name != entry:
        refuse(
            f"cannot go on with another OpenCL text for {node.name!r}",
            hint="bind the very text, blanks and comments included",
        )
    if any(one is not other for one, other in zip(made.inputs, node.inputs, strict=True)):
        refuse("cannot align the operands again", expected="operands that are aligned already")
    return made


def _describe_host(element: HostFunction, _: Describing) -> dict[str, Any]:
    return {"bind": "function", "digest": function_digest(element.function), **describe_policy(element.policy)}


def _rebuild_host(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    fields.text("digest")
    policy = read_policy(fields, rebuilding)
    made = host(
        node.bound,
        *node.inputs,
        dtype=node.spec.dtype,
        shape=node.spec.shape,
        on_error=policy.on_error,
        dead_letter=policy.path,
        name=node.given,
    )
    made.freeze_fields(policy=policy)
    return made


def _describe_scan(element: ScanFunction, describing: Describing) -> dict[str, Any]:
    init = describing.array(element.init)
    return {"bind": "function", "digest": function_digest(element.function), "init": init}


def _rebuild_scan(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    fields.text("digest")
    one = Fields(fields.take("init"), "the first carry")
    init = rebuilding.array(one, Spec(node.spec.dtype, node.spec.shape))
    one.close()
    made: Element = scan(node.bound, *node.inputs, init=init, name=node.given)
    return made


def _describe_kernel_scan(element: KernelScan, describing: Describing) -> dict[str, Any]:
    function = element.step.function
    describing.kernels[function.digest] = function
    kept = {"kernel": function.digest, "axis": element.attrs["axis"], "associative": element.associative}
    first, *others = [describing.array(init) for init in element.inits]
    return {**kept, "init": first, **({"others": others, "result": element.step.result} if others else {})}


def _rebuild_kernel_scan(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    function = _kept_kernel(fields, rebuilding)
    associative, axis = fields.flag("associative"), fields.maybe("axis", fields.whole)
    several = "others" in fields
    kept = [fields.take("init"), *(fields.items("others", len(function.results)) if several else ())]
    result = fields.whole("result") if several else 0
    if len(kept) != len(function.results) or result >= len(kept):
        refuse(
            "cannot make a scan again whose step has other results",
            expected=str(len(kept)),
            got=", ".join(function.results),
        )
    shape = node.spec.shape if axis is None and not associative else ()
    inits = []
    for data, name in zip(kept, function.results, strict=True):
        one = Fields(data, "a first carry")
        inits.append(rebuilding.array(one, Spec(ir.stored(name), shape)))
        one.close()
    public = 0 if axis is None else axis + node.spec.is_stream
    made = kernel_scan(function, node.inputs, inits, public, associative=associative, result=result, name=node.given)
    if made.attrs["axis"] != axis:
        refuse("cannot make a scan again along another axis", expected=str(made.attrs["axis"]), got=axis)
    if any(one is not other for one, other in zip(made.inputs, node.inputs, strict=True)):
        refuse("cannot align the operands again", expected="operands that are aligned already")
    return made


COMPUTES: dict[type[Element], Part] = {
    Compute: Part("compute", _describe_compute, _rebuild_compute),
    Random: Part("random", _describe_random, _rebuild_random),
    HostFunction: Part("host", _describe_host, _rebuild_host, "function"),
    ScanFunction: Part("scan", _describe_scan, _rebuild_scan, "function"),
    KernelScan: Part("kernel_scan", _describe_kernel_scan, _rebuild_kernel_scan),
}

OPS: dict[type[Op], Part] = {
    UserOp: Part("kernel", _describe_kernel, _rebuild_kernel),
    SourceOp: Part("opencl", _describe_opencl, _rebuild_opencl, "text"),
}
"""Classes of operations that belong to one element."""
