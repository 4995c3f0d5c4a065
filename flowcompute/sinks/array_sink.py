"""Results in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element, GrowingFile, StagingArea, State, Writer
from flowcompute.errors import CheckpointError, RunError, Site, SpecError
from flowcompute.sinks.unbound import UNBOUND
from flowcompute.spec import Spec


def to_array(*, out: np.ndarray | None = None, name: str | None = None) -> MemorySink:
    """Return the result as a NumPy array, or as a NumPy scalar where it has no axes.

    Args:
        out: an array to fill with the result, which then is the root's value. It must be C-contiguous, have the
            result's dtype and shape, and share no memory with what the job reads. It does not count against
            `memory=`. While a job runs, and after one that failed, it holds a part of the result.
        name: what plans and errors call it.

    Raises:
        SpecError: if `out` cannot take the result, or the result's length cannot be known; when composed.
    """
    return MemorySink(out, name=name)


class MemorySink(Destination):
    """The result in memory, made by `to_array`."""

    in_memory = True
    out: np.ndarray | None

    def __init__(self, out: np.ndarray | None = None, *, name: str | None = None) -> None:
        super().__init__(UNBOUND, name=name)
        self.freeze_fields(out=out, lent=out is not None)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "to_array"

    def accept(self, spec: Spec, element: Element) -> None:
        """Check that `out` can take the result.

        Raises:
            SpecError: if it cannot.
        """
        if self.out is None:
            return
        if spec.stream is not None and spec.length is None:
            got = f"{element.name or element.label}, whose length is not known before the run"
            raise self._unsuitable("a result of known length", got, "leave out= away: the result is a new array")
        shape = spec.shape if spec.stream is None else (spec.length, *spec.shape)
        expected = f"a C-contiguous {spec.dtype.name} array of shape {shape} that can be written to"
        fitting = f'out=np.empty({shape}, "{spec.dtype.name}")'
        if not isinstance(self.out, np.ndarray):
            raise self._unsuitable(expected, type(self.out).__name__, fitting)
        if (self.out.dtype, self.out.shape) != (spec.dtype, shape):
            is_plain = self.out.shape == shape and self.out.dtype.isnative and self.out.dtype.kind in "biuf"
            cast = f', or cast the result to it: x.astype("{self.out.dtype}")' if is_plain else ""
            raise self._unsuitable(expected, f"{self.out.dtype} of shape {self.out.shape}", fitting + cast)
        flags = self.out.flags
        having = {"C-contiguous": flags.c_contiguous, "writeable": flags.writeable, "aligned": flags.aligned}
        if missing := [f"not {what}" for what, has in having.items() if not has]:
            raise self._unsuitable(expected, f"one that is {' and '.join(missing)}", fitting)

    def _unsuitable(self, expected: str, got: str, hint: str | None = None) -> SpecError:
        return SpecError(
            "cannot take the result into out=",
            element=self.name or self.label,
            site=self.site,
            expected=expected,
            got=got,
            hint=hint,
        )

    def open(self, spec: Spec) -> MemoryWriter:
        """Start writing. Where the length is known, all memory is allocated at once.

        Raises:
            RunError: if there is not enough memory.
        """
        return MemoryWriter(spec, self.name or self.label, self.site, self.out)

    def reopen(self, spec: Spec, place: StagingArea, state: State) -> MemoryWriter:
        """Continue with the records that the checkpoint holds.

        Raises:
            CheckpointError: if it does not hold them.
            RunError: if there is not enough memory.
        """
        writer = self.open(spec)
        writer.restore(state, place.side())
        return writer

    def recover(self, spec: Spec, place: StagingArea, state: State) -> Any:
        """Return the array, or the scalar, of a finished job."""
        return self.reopen(spec, place, state).commit()


class MemoryWriter(Writer):
    """Writer into an array.

    Attributes:
        element: name of the element in the plan, for errors.
        limit_bytes: size of the largest result, or None for no limit. It matters where the length is not known
            beforehand.
    """

    def __init__(self, spec: Spec, element: str, site: Site | None, out: np.ndarray | None = None) -> None:
        self.element = element
        self.limit_bytes: int | None = None
        self._spec = spec
        self._site = site
        self._pieces: list[np.ndarray] = []
        self._written = 0
        self._persisted = 0
        self._out = self._result = out
        if out is not None:
            return
        if spec.stream is None or spec.length is not None:
            self._result = self._allocate(spec.shape if spec.length is None else (spec.length, *spec.shape))

    def buffer(self, start: int, stop: int) -> np.ndarray | None:
        """Return the part of the result that these records will be, or None where the length is not known."""
        if self._result is None or self._spec.stream is None:
            return None
        return self._result[start:stop]

    def write(self, array: np.ndarray, start: int) -> None:
        """Take records; see `Writer.write`.

        Raises:
            RunError: if the result outgrows `limit_bytes`.
        """
        if self._spec.stream is None and self._result is not None:
            np.copyto(self._result, array, casting="equiv")
            self._written = 1
            return
        stop = start + len(array)
        self._limit(stop)
        if self._result is None:
            self._pieces.append(array.copy())
        else:
            place = self._result[start:stop]
            if not _is_same_memory(place, array):
                np.copyto(place, array, casting="equiv")
        self._written = stop

    def commit(self) -> Any:
        """Return the array, or the scalar."""
        result = self._join() if self._result is None else self._result
        self.abort()
        return result[()] if result.ndim == 0 and self._out is None else result

    def abort(self) -> None:
        """Drop what was written."""
        self._result = np.empty((0, *self._spec.shape), self._spec.dtype)
        self._pieces.clear()

    # -- checkpoints --------------------------------------------------------------------------

    def snapshot(self) -> State:
        """Return the number of records written (1 for a whole value)."""
        return {"written": self._written}

    def persist(self, state: State, place: StagingArea) -> State:
        """Write the records that the checkpoint does not hold yet; see `Writer.persist`."""
        stop, side = int(state["written"]), place.side()
        offset = self._persisted * self._spec.item_bytes
        if stop > self._persisted:
            for part in self._parts(self._persisted, stop):
                data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
                side.write_at(data, offset)
                offset += len(data)
            self._persisted = stop
        side.fsync()
        return {**state, "side": side.mark()}

    def restore(self, state: State, side: GrowingFile) -> None:
        """Read the records that the checkpoint holds, and cut off what it holds beyond them.

        Raises:
            CheckpointError: if it holds fewer.
        """
        items = int(state["written"])
        resident = self._spec.stream is None
        side.restore(state["side"])
        if self._result is not None and not 0 <= items <= (1 if resident else len(self._result)):
            raise self._not_in_checkpoint(f"{items} records")
        if self._result is None:
            # The last byte is there, or as much memory is not asked for.
            size = items * self._spec.item_bytes
            if items < 0 or (size and not side.read_into(memoryview(bytearray(1)), size - 1)):
                raise self._not_in_checkpoint(f"fewer than {items} records")
            self._limit(items)
        place = self._allocate((items, *self._spec.shape)) if self._result is None else self._result
        data = (place if resident else place[:items]).reshape(-1).view(np.uint8).data
        if items and (count := side.read_into(data, 0)) != len(data):
            raise self._not_in_checkpoint(f"{count} of {len(data)} bytes")
        if self._result is None and items:
            self._pieces = [place]
        self._written = self._persisted = items

    def _parts(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Yield the records from `start` to `stop` as they lie in memory. More may be written meanwhile."""
        if self._result is not None:
            yield self._result if self._spec.stream is None else self._result[start:stop]
            return
        at = 0
        for piece in tuple(self._pieces):
            if at + len(piece) > start and at < stop:
                yield piece[max(start - at, 0) : stop - at]
            at += len(piece)

    def _not_in_checkpoint(self, got: str) -> CheckpointError:
        return CheckpointError(
            "cannot resume: the checkpoint does not hold what was computed of this result",
            element=self.element,
            site=self._site,
            got=got,
            hint="remove the checkpoint to begin anew",
        )

    def _join(self) -> np.ndarray:
        result = self._allocate((self._written, *self._spec.shape))
        stop = self._written
        # Pieces are copied from the last to the first, so that each is freed before the next one is copied.
        while self._pieces:
            piece = self._pieces.pop()
            result[stop - len(piece) : stop] = piece
            stop -= len(piece)
        return result

    def _allocate(self, shape: tuple[int, ...]) -> np.ndarray:
        try:
            return np.empty(shape, self._spec.dtype)
        except (MemoryError, ValueError) as error:
            raise self._too_large(f"an array of shape {shape} of {self._spec.dtype.name}") from error

    def _limit(self, items: int) -> None:
        needed = items * self._spec.item_bytes
        if self.limit_bytes is not None and needed > self.limit_bytes:
            raise self._too_large(f"{needed} bytes after {items:,} records", f"at most {self.limit_bytes} bytes")

    def _too_large(self, got: str, expected: str | None = None) -> RunError:
        return RunError(
            "cannot hold the result: it is too large for memory",
            element=self.element,
            site=self._site,
            expected=expected,
            got=got,
            hint="write it to a file: x >> fc.save(path); or raise memory=",
        )


def _is_same_memory(place: np.ndarray, array: np.ndarray) -> bool:
    """Check whether `array` is the array that `buffer` returned for `place`."""
    return bool(
        array.strides == place.strides
        and array.dtype == place.dtype
        and array.__array_interface__["data"][0] == place.__array_interface__["data"][0]
    )
