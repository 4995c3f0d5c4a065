"""Outer and cross products, and sums over shared axes: NumPy's numbers, and the kernels that they should be."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError, SpecTypeError
from tests.support.slow import compiled_but

SIZES = dict(zip("nijkb", (6, 4, 3, 5, 2), strict=True))
SUBSCRIPTS = ["ni,ij->nj", "ij,nj->ni", "ni,nj->ij", "ni,nj->nij", "ni,ni->n", "ni,ni->i", "ni,ni->", "n,n->", "n,ni->i", "ni,n->i", "nij,jk->nik", "ij,njk->nik", "nij,njk->nik", "nbij,nbjk->nbik", "nbi,nbj->bij", "nij->", "nij->ij", "nij->nji", "nii->ni", "nii->n", "ni,i->n", "i,ni->n", "ni,j->ij", "ni,j->nij", "ni,n->ni", "nij,ni->nj", "nijk,jkb->nib", "nijk,kj->ni", "nbi,bij->nbj", "n,ni,nj->ij", "ni,ij,nj->n", "ni,ij,jk->nk", "ni->", "n", "nij,nji->", "nij,nij->ij", "nij,nkj->ik", "nij,bj->nbi", "ni,nj->ji", "...i,ij->...j", "ni,ni->in", "ij,nj->in", "ij,jk", "ii", "i,j->ji", "ijk,jk->i", "ij,kj->ik", "i...,...->...", ",ni->ni", "nii,jj,nj->ni"]  # fmt: skip


def arrays_of(subscripts: str, dtype: Any = "f8", seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    terms = subscripts.split("->", maxsplit=1)[0].replace("...", "n" if subscripts.startswith(".") else "j").split(",")
    return [rng.integers(-4, 5, [SIZES[label] for label in term]).astype(dtype) for term in terms]


def ways(subscripts: str, arrays: list[np.ndarray]) -> list[tuple[Any, ...]]:
    """Return the operands with each that has the stream's letter first as a stream, and as a resident value."""
    terms = subscripts.split("->", maxsplit=1)[0].split(",")
    makers = [(fc.source, fc.constant) if term.startswith("n") or term == "...i" else (fc.constant,) for term in terms]
    return [tuple(make(array) for make, array in zip(way, arrays, strict=True)) for way in itertools.product(*makers)]


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_sums_of_whole_numbers_are_numpys(subscripts: str) -> None:
    arrays = arrays_of(subscripts)
    want = np.einsum(subscripts, *arrays)
    for operands in ways(subscripts, arrays):
        made = fc.einsum(subscripts, *operands)
        value = made.resolve(device="numpy", progress=False)
        assert made.shape == value.shape == want.shape
        assert made.dtype == value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)


def test_on_a_device() -> None:
    chosen = [
        "ni,ij->nj",
        "ni,nj->ij",
        "nbi,nbj->bij",
        "nij,njk->nik",
        "ni,ni->n",
        "nii->n",
        "n,ni,nj->ij",
        "ij,nj->ni",
    ]
    made, wanted = [], []
    for subscripts in chosen:
        arrays = arrays_of(subscripts, "f4")
        made.append(fc.einsum(subscripts, *ways(subscripts, arrays)[0]))
        wanted.append(np.einsum(subscripts, *arrays))
    for value, want in zip(fc.resolve(*made, device="cpu", progress=False), wanted, strict=True):
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)


@given(data=st.data())
def test_any_subscripts_dtypes_and_batch_size(data: st.DataObject) -> None:
    letters = st.lists(st.sampled_from("ijkb"), max_size=3, unique=True).map("".join)
    terms = ["n" + data.draw(letters), data.draw(st.sampled_from(["", "n"])) + data.draw(letters)]
    known = sorted(set("".join(terms)) - {"n"})
    output = (
        "".join(data.draw(st.permutations(data.draw(st.lists(st.sampled_from(known), unique=True))))) if known else ""
    )
    subscripts = ",".join(terms) + "->" + data.draw(st.sampled_from(["", "n"])) + output
    dtypes = [data.draw(st.sampled_from(["i1", "i4", "u2", "f4", "f8"])) for _ in terms]
    arrays = [arrays_of(term, dtype, seed)[0] for seed, (term, dtype) in enumerate(zip(terms, dtypes, strict=True))]
    want = np.einsum(subscripts, *arrays)
    operands = data.draw(st.sampled_from(ways(subscripts, arrays)))
    strategy = fc.Strategy(batch_bytes=data.draw(st.integers(8, 4000)))
    value = fc.einsum(subscripts, *operands).resolve(device="numpy", progress=False, strategy=strategy)
    assert value.dtype == want.dtype
    np.testing.assert_array_equal(value, want)


def test_products_of_matrices_are_one_kernel() -> None:
    x, w = fc.source(np.ones((64, 8), "f4")), np.ones((8, 4), "f4")
    for made, meant in [
        (fc.einsum("ni,ij->nj", x, w), x @ w),
        (fc.einsum("ni,nj->ij", x, x), x.T @ x),
        (fc.einsum("ni,mi->nm", x, w.T), x @ fc.constant(w)),
    ]:
        assert [kernel.source for kernel in fc.plan(made, device="cpu").kernels] == [
            kernel.source for kernel in fc.plan(meant, device="cpu").kernels
        ]
        assert made.call.name == "einsum"


def test_streams_of_unknown_length() -> None:
    a = np.arange(12.0).reshape(4, 3)
    x = fc.iterate([a[:1], a[1:]], shape=(3,), dtype="f8")
    np.testing.assert_array_equal(fc.einsum("ni,nj->ij", x, x).resolve(progress=False), a.T @ a)
    np.testing.assert_array_equal(
        fc.einsum("ni,n->ni", x, np.arange(4)).resolve(progress=False), a * np.arange(4)[:, None]
    )


CALLS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda x: fc.outer(x[:, 0], [1.0, 2]), lambda a: np.outer(a[:, 0], [1.0, 2])),
    (lambda x: np.outer(x, np.ones((2, 2))), lambda a: np.outer(a, np.ones((2, 2)))),
    (lambda x: fc.cross(x, x[:, ::-1]), lambda a: np.cross(a, a[:, ::-1])),
    (lambda x: np.cross(x, [1.0, 2, 3]), lambda a: np.cross(a, [1.0, 2, 3])),
    (lambda x: fc.cross(x[:, :, None], x[:, :, None] * 2 + 1, axis=1), lambda a: np.cross(a[..., None], a[..., None] * 2 + 1, axis=1)),
    (lambda x: fc.tensordot(x, np.ones((3, 2)), 1), lambda a: np.tensordot(a, np.ones((3, 2)), 1)),
    (lambda x: fc.tensordot(x.T, x, 1), lambda a: np.tensordot(a.T, a, 1)),
    (lambda x: fc.tensordot(x, x, 2), lambda a: np.tensordot(a, a, 2)),
    (lambda x: fc.tensordot(x, np.ones(2), 0), lambda a: np.tensordot(a, np.ones(2), 0)),
    (lambda x: fc.tensordot(np.ones((2, 3)), x, (-1, 1)), lambda a: np.tensordot(np.ones((2, 3)), a, (-1, 1))),
    (lambda x: np.tensordot(x, x, ([0], [0])), lambda a: np.tensordot(a, a, ([0], [0]))),
    (lambda x: np.einsum("ni->i", x), lambda a: np.einsum("ni->i", a)),
    (lambda x: fc.einsum("in,ni->i", x.T, x), lambda a: np.einsum("in,ni->i", a.T, a)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "of"),
    compiled_but(
        [("numpy", fc.source), ("cpu", fc.source), ("numpy", fc.constant)],
        itertools.product(("numpy", "cpu"), (fc.source, fc.constant)),
    ),
)
def test_others_are_numpys(device: str, of: Any) -> None:
    array = np.random.default_rng(1).integers(-5, 6, (7, 3)).astype("f8")
    for place, (call, numpy) in enumerate(CALLS):
        value, want = call(of(array)).resolve(device=device, progress=False), numpy(array)
        assert (value.shape, value.dtype) == (want.shape, want.dtype), place
        np.testing.assert_array_equal(value, want, err_msg=str(place))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: fc.einsum("ni,mj->ij", x, x), 'every record of a stream by every record.*"m", "n"'),
        (lambda x: fc.einsum("nn->n", fc.source(np.ones((3, 3)))), "diagonal between a stream and its items"),
        (lambda x: fc.einsum("ni->ii", x), "each letter of the result once"),
        (lambda x: fc.einsum("ni->j", x), "among those of the operands"),
        (lambda x: fc.einsum("ni,i", x), "2 terms and 1 operands"),
        (lambda x: fc.einsum("nij", x), "cannot label the axes of an operand"),
        (lambda x: fc.einsum("n..i->n", x), "three dots"),
        (lambda x: fc.einsum("...i->i", x), "an ellipsis in the result"),
        (lambda x: fc.einsum("ni->n->", x), "cannot read the subscripts"),
        (lambda x: fc.einsum("n1->n", x), "cannot read the subscripts"),
        (lambda x: fc.einsum("ni,ij", x, np.ones((4, 2))), 'axes "i".*\n.*3 and 4'),
        (lambda x: fc.einsum("ni->n", x > 0), "cannot multiply bools"),
        (lambda x: fc.tensordot(x, np.ones((4, 2)), 1), "axes of different size"),
        (lambda x: fc.tensordot(x, x, 3), "axes="),
        (lambda x: fc.tensordot(x, x, ([0, 1], [0])), "another number of axes"),
        (lambda x: fc.tensordot(x, x, 0), "every record of a stream by every record"),
        (lambda x: fc.outer([1.0], x), "cannot multiply by every record.*fc.outer"),
        (lambda x: fc.outer(x, x), "cannot multiply by every record.*einsum"),
        (lambda x: fc.cross(x[:, :2], x[:, :2]), "vectors of three numbers"),
        (lambda x: fc.cross(x, x, axis=0), "vectors of three numbers"),
    ],
)
def test_what_is_refused(call: Callable[..., Any], text: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){text}"):
        call(fc.source(np.ones((5, 3))))


def test_subscripts_are_text() -> None:
    with pytest.raises(SpecTypeError, match="cannot take subscripts="):
        fc.einsum(fc.source(np.ones(3)), "n")
