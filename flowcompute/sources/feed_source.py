"""Streams whose records are sent by hand, through a flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowcompute.elements import ItemShape, Reader, Source, item_dtype, parse_item_shape, user_site
from flowcompute.errors import RunError, SourceError, SpecError
from flowcompute.spec import BFLOAT16, Spec, Stream, parse_dtype


def feed(shape: ItemShape = (), dtype: npt.DTypeLike | None = None, *, name: str | None = None) -> FeedSource:
    """Make a stream of unknown length whose records are sent by hand: `with element.flow() as flow: flow.send(...)`.

    Args:
        shape: item shape or item type (`fc.Vector(4, "float32")`).
        dtype: of a number; may be left out where the item type says it.
        name: what plans and errors call it, and what `send` calls it where there are several feeds.

    Raises:
        SpecError: if `shape` or `dtype` make no sense.
    """
    said = item_dtype(shape, dtype, name)
    if said is None:
        raise SpecError(
            "cannot make a feed without a dtype",
            element=name,
            site=user_site(),
            expected="dtype=",
            hint='fc.feed(shape=(4,), dtype="float32")',
        )
    try:
        parsed = parse_dtype(said)
    except TypeError as error:
        raise SpecError(str(error), element=name, site=user_site()) from None
    return FeedSource(Spec(parsed, parse_item_shape(shape, name), Stream(None)), name=name)


class FeedSource(Source):
    """A stream that a flow feeds, made by `feed`."""

    rereadable = False
    seekable = False

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "feed"

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return None: kernels use the sent records in place."""
        return None

    def open(self, *, position: int = 0, mapped: bool = True) -> Reader:
        """Refuse to open: a feed has no data of its own.

        Raises:
            SourceError: always.
        """
        del position, mapped
        raise SourceError(
            "cannot read a feed: it has no data of its own",
            element=self.name or self.label,
            site=self.site,
            hint="open it as a flow and send: with element.flow() as flow: flow.send(array)",
        )

    def accept(self, array: npt.ArrayLike, name: str) -> np.ndarray:
        """Return a sent array as records of the feed: `(items, *item)`, C-contiguous, in the feed's dtype.

        Args:
            array: the sent array.
            name: of the feed in the plan.

        Raises:
            RunError: if shape or dtype do not fit.
        """
        try:
            sent = np.asarray(array)
        except (TypeError, ValueError) as error:
            raise RunError(
                f"cannot convert what was sent to an array: {error}", element=name, site=self.site
            ) from error
        spec = self.spec
        if sent.shape[1:] != spec.shape or sent.ndim != spec.ndim:
            one = sent.shape == spec.shape
            raise RunError(
                "cannot take records of this shape",
                element=name,
                site=self.site,
                expected=f"{('?', *spec.shape)}".replace("'", ""),
                got=f"{sent.shape}",
                hint="one record alone is sent as array[None]" if one else None,
            )
        if sent.dtype != spec.dtype and not _casts(sent.dtype, spec.dtype):
            raise RunError(
                "cannot take numbers of this dtype",
                element=name,
                site=self.site,
                expected=f"{spec.dtype.name}, or a dtype that casts to it safely",
                got=sent.dtype.name,
                hint=f"send array.astype({spec.dtype.name!r})",
            )
        return np.ascontiguousarray(sent, spec.dtype)


def _casts(source: np.dtype, target: np.dtype) -> bool:
    if BFLOAT16 in (source, target):
        return source.kind in "biuf" and (target.kind == "f" or target == BFLOAT16)
    return source.kind in "biuf" and np.can_cast(source, target, "same_kind")
