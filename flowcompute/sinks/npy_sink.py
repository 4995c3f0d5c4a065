"""Results in .npy files."""

from __future__ import annotations

from flowcompute.elements import Element
from flowcompute.errors import SpecError
from flowcompute.sinks.file_sink import StoredSink
from flowcompute.spec import BFLOAT16, Spec

_MAGIC = b"\x93NUMPY\x01\x00"
_LENGTH_DIGITS = 21  # as many as NumPy reserves for a length, so that files are equal byte by byte
_ALIGNMENT = 64


class NpySink(StoredSink):
    """The result in a .npy file of version 1.0 with exactly the bytes that `np.save` writes. `fc.save` makes it."""

    takes_regions = True

    def accept(self, spec: Spec, element: Element) -> None:
        """Check that the dtype is not bfloat16, for which the format has no name.

        Raises:
            SpecError: if it is.
        """
        if spec.dtype == BFLOAT16:
            raise SpecError(
                "cannot write bfloat16 to a .npy file: the format has no name for it",
                element=self.name or self.label,
                site=self.site,
                expected="a dtype of NumPy's own",
                got=f"bfloat16 from {element.name or element.label}",
                hint='save it as raw: fc.save("y.raw"); or cast it: .astype("float32")',
            )

    def header(self, spec: Spec, length: int | None) -> bytes:
        """Return the header, padded so that the data begin at a multiple of 64 bytes."""
        shape = spec.shape if length is None else (length, *spec.shape)
        text = f"{{'descr': {spec.dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
        if shape:
            text += " " * (_LENGTH_DIGITS - len(repr(shape[0])))
        prefix = len(_MAGIC) + 2
        text += " " * (-(prefix + len(text) + 1) % _ALIGNMENT) + "\n"
        return _MAGIC + len(text).to_bytes(2, "little") + text.encode("ascii")
