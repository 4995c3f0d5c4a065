"""Streams that are kept in a temporary file for a later pass: `fc.spool`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from flowcompute.elements.arguments import whole
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.files import path_text


def _kept(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def _rebuild_spool(kept: KeptOp) -> Compute:
    attrs = kept.attrs
    return spool(kept.one(), folder=attrs.maybe("folder", attrs.text), limit=attrs.maybe("limit", attrs.whole))


SPOOL = Op("spool", 1, Kind.VIEW, np.asarray, _kept, arithmetic=False, rebuild=_rebuild_spool)


def spool(
    x: Operand, *, folder: str | os.PathLike[str] | None = None, limit: int | None = None, name: str | None = None
) -> Compute:
    """Keep the stream in a temporary file where a later pass needs it again.

    A source that can be read once (an iterator) can so be used where two passes are needed (`x - x.mean(axis=0)`). What
    is costly to compute is computed once. Where one pass is enough nothing is written. The file has no name and
    vanishes with the run, however that ends.

    Args:
        x: a stream.
        folder: where the file lies; the system's folder for temporary files by default.
        limit: bytes that it may take at most; half of what is free there by default. Beyond it
            the run fails with an error that says so.
        name: name of the element.

    Raises:
        SpecError: if `x` is no stream, or `limit` no number of bytes.
    """
    element: Any = as_element(x, "spool")
    if not element.spec.is_stream:
        raise SpecError(
            "cannot spool what is no stream",
            element=name or "spool",
            site=user_site(),
            expected="a stream",
            got=str(element.spec),
        )
    called = name if isinstance(name, str) else "spool"
    most = None if limit is None else whole(called, "limit", limit, 1, expected="a number of bytes from 1 on")
    try:
        place = None if folder is None else os.path.abspath(path_text(folder))
    except ValueError:
        raise SpecError(
            "cannot take folder=", element=called, site=user_site(), expected="a path", got=short_repr(folder)
        ) from None
    attrs = {"folder": place, "limit": most}
    return Compute(SPOOL, (element,), element.spec, attrs, name)
