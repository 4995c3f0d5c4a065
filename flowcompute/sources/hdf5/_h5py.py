"""The one import of h5py, which `flowcompute[hdf5]` brings. It reads the metadata of a file, and none of its data."""

from __future__ import annotations

from array import array
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.errors import SourceError
from flowcompute.files import FileView
from flowcompute.imports import LateModule, dataclass, import_problem

if TYPE_CHECKING:
    import h5py
else:
    h5py = LateModule("h5py")

MOST_KEYS = 1000
MOST_CHUNKS = 50_000_000
_BOOL_NAMES = {"FALSE": 0, "TRUE": 1}


class UnreadableError(Exception):
    """A dataset that is not read; its text says why."""


class NoDatasetError(Exception):
    """A key of no dataset; `keys` are those that there are."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__()
        self.keys = keys


@dataclass(frozen=True)
class Dataset:
    """Metadata of a dataset.

    Attributes:
        key: its path in the file.
        dtype: of its numbers as stored.
        shape: of the array.
        offset: place of its bytes, if they lie together; None where none were written.
        chunk: shape of a chunk, or None.
        filters: names of filters, and their first parameter, in the order in which they were applied.
        fill: number where nothing was written.
        numbers, places, sizes, masks: of each chunk its number in C order, its place and bytes in the file, and a bit
            for each filter that was left out.
    """

    key: str
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int | None
    chunk: tuple[int, ...] | None
    filters: tuple[tuple[str, int], ...]
    fill: Any
    numbers: np.ndarray
    places: np.ndarray
    sizes: np.ndarray
    masks: np.ndarray


_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32"}


def require() -> None:
    """Import h5py.

    Raises:
        SourceError: if it is not installed. The error says what to install.
    """
    problem = import_problem("h5py")
    if problem is not None:
        raise SourceError(
            "cannot read HDF5 files: a package is missing", expected="h5py", hint='pip install "flowcompute[hdf5]"'
        ) from problem


def describe(file: str | FileView, key: str | None) -> Dataset:
    """Return what a file says of a dataset.

    Args:
        file: its path, or the open file itself.
        key: of the dataset; None where there is one.

    Raises:
        NoDatasetError: if there is none of that key.
        UnreadableError: if it is not read.
        OSError: if it is no such file, or is damaged.
    """
    try:
        with h5py.File(file, "r", **({"locking": False} if isinstance(file, str) else {})) as opened:
            if opened.userblock_size:
                raise UnreadableError("it has a user block before its data")
            described = _described(_found(opened, key))
    except (KeyError, RuntimeError, ValueError, TypeError, SystemError) as error:
        # h5py makes a SystemError of what HDF5 says while it walks through a group.
        clear_frames(error.__traceback__)
        _check(file)
        raise UnreadableError(f"it is damaged: {str(error)[:200]}") from error
    except (OSError, UnreadableError, NoDatasetError) as error:
        # Frames of h5py hold what opens a file object. If somebody keeps the error until the interpreter ends, HDF5
        # frees that after it, and the process dies of it.
        clear_frames(error.__traceback__)
        _check(file)
        raise
    _check(file)
    return described


def _check(file: str | FileView) -> None:
    """Raise the error of a read that failed, whatever the library made of it."""
    if isinstance(file, FileView) and file.problem is not None:
        raise file.problem


def _keys(file: Any) -> list[str]:
    found: list[str] = []

    def visit(name: str | bytes, link: Any) -> bool | None:
        if isinstance(link, h5py.HardLink):
            text = name.decode(errors="replace") if isinstance(name, bytes) else name
            if isinstance(file.get(text, getclass=True), type) and file.get(text, getclass=True) is h5py.Dataset:
                found.append(text)
        return True if len(found) >= MOST_KEYS else None

    file.visititems_links(visit)
    return found


def _found(file: Any, key: str | None) -> Any:
    """Return the dataset of a key, to which hard links lead alone."""
    if key is None:
        keys = _keys(file)
        if len(keys) != 1:
            raise NoDatasetError(keys)
        (key,) = keys
    group = file
    for part in key.strip("/").split("/"):
        if part in ("", ".", "..") or not isinstance(group, h5py.Group):
            raise NoDatasetError(_keys(file))
        link = group.get(part, getlink=True)
        if link is None:
            raise NoDatasetError(_keys(file))
        if not isinstance(link, h5py.HardLink):
            raise UnreadableError(f"its key leads through a link to elsewhere: {part!r}")
        group = group[part]
    if not isinstance(group, h5py.Dataset):
        raise NoDatasetError(_keys(file))
    return group


def _described(dataset: Any) -> Dataset:
    if dataset.is_virtual:
        raise UnreadableError("it is virtual: its data are in other files")
    if dataset.external:
        raise UnreadableError("its data are in other files (external storage)")
    if dataset.shape is None:
        raise UnreadableError("it has no data at all")
    dtype = _dtype(dataset)
    plist = dataset.id.get_create_plist()
    layout = plist.get_layout()
    if layout == h5py.h5d.COMPACT:
        raise UnreadableError("its data stand in its header (compact storage)")
    empty = np.empty(0, np.int64)
    own = (dataset.name.strip("/"), dtype, tuple(map(int, dataset.shape)))
    fill = np.zeros((), dtype.newbyteorder("="))
    fill[...] = dataset.fillvalue
    if dataset.chunks is None:
        return Dataset(*own, dataset.id.get_offset(), None, (), fill[()], empty, empty, empty, empty)
    filters = []
    for i in range(plist.get_nfilters()):
        code, _, values, name = plist.get_filter(i)
        if code not in _FILTERS:
            said = name.decode(errors="replace")[:60] if isinstance(name, bytes) else str(name)
            raise UnreadableError(f"its filter {said!r} ({code}) is none of {', '.join(_FILTERS.values())}")
        filters.append((_FILTERS[code], int(values[0]) if values else 0))
    cut = any(size % part for size, part in zip(dataset.shape, dataset.chunks, strict=True))
    if filters and cut and all(name == "shuffle" for name, _ in filters):
        # HDF5 can leave chunks at an edge without filters, which h5py does not tell. gzip and fletcher32 would show it.
        raise UnreadableError("its chunks are shuffled alone, and nothing says whether those at an edge are")
    return Dataset(*own, None, tuple(map(int, dataset.chunks)), tuple(filters), fill[()], *_chunks(dataset))


def _dtype(dataset: Any) -> np.dtype:
    dtype: np.dtype
    dtype, stored = dataset.dtype, dataset.id.get_type()
    members = h5py.check_enum_dtype(dtype)
    if dtype.kind == "b":
        if members is not None and members != _BOOL_NAMES:
            raise UnreadableError("its bools are no bools of h5py")
        return np.dtype(bool)
    if dtype.kind not in "iuf" or dtype.itemsize not in (1, 2, 4, 8):
        raise UnreadableError(f"its type {str(dtype)[:60]} is none of plain numbers")
    plain = np.dtype(dtype.str)
    if members is None and not stored.equal(h5py.h5t.py_create(plain)):
        raise UnreadableError(f"its numbers are stored in a way that {plain.name} has not")
    return plain


def _chunks(dataset: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return number, place, size and mask of each chunk, in order of their numbers."""
    across = [-(-size // part) for size, part in zip(dataset.shape, dataset.chunks, strict=True)]
    strides = [1] * len(across)
    for i in range(len(across) - 2, -1, -1):
        strides[i] = strides[i + 1] * across[i + 1]
    columns = tuple(array("q") for _ in range(4))
    outside = False

    def add(info: Any) -> bool | None:
        nonlocal outside
        index = [offset // part for offset, part in zip(info.chunk_offset, dataset.chunks, strict=True)]
        outside = outside or not all(0 <= i < count for i, count in zip(index, across, strict=True))
        number = sum(i * stride for i, stride in zip(index, strides, strict=True))
        for column, value in zip(columns, (number, info.byte_offset, info.size, info.filter_mask), strict=True):
            column.append(value)
        return True if outside or len(columns[0]) > MOST_CHUNKS else None

    if 0 not in dataset.shape:
        dataset.id.chunk_iter(add)
    if len(columns[0]) > MOST_CHUNKS:
        raise UnreadableError(f"it has more than {MOST_CHUNKS:,} chunks")
    if outside:
        raise UnreadableError("it is damaged: a chunk lies outside of its shape")
    numbers, places, sizes, masks = (np.frombuffer(column, np.int64).copy() for column in columns)
    order = np.argsort(numbers, kind="stable")
    if (np.diff(numbers[order]) == 0).any():
        raise UnreadableError("it is damaged: a chunk is there twice")
    return numbers[order], places[order], sizes[order], masks[order]
