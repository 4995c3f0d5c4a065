"""Tensors that stay in files: beside a model, or in its own. They are mapped, and never lie outside of its folder."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from flowcompute.elements import Constant, user_site
from flowcompute.errors import SourceError, short_repr
from flowcompute.model_files import PlacedWeight, WeightFile, open_weight_file
from flowcompute.onnx.tensors.model_tensors import damaged, text_of


class ExternalData:
    """The files in the folder of a model.

    Args:
        path: of the model.
        mark: the key that stands for a place in the model's own file; no file knows it.
    """

    def __init__(self, path: str, mark: str) -> None:
        self._own, self._mark = path, mark
        self._folder = os.path.realpath(os.path.dirname(path))
        self._files: dict[str, WeightFile] = {}

    def __call__(self, tensor: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Constant:
        """Return a tensor, which stays in its file.

        Raises:
            SourceError: if its place is none in a file of the folder.
        """
        entries = {one.key: text_of(one.value) for one in tensor.external_data}
        own = entries.get(self._mark, "").split()
        if own:
            entries = {"offset": own[0], "length": own[1]}
        path = self._own if own else self._path(tensor.name, entries.get("location", ""))
        offset, length = (_whole(tensor.name, entries, key) for key in ("offset", "length"))
        size = math.prod(shape) * dtype.itemsize
        if length is not None and length != size:
            raise damaged(f"tensor {short_repr(tensor.name)} has not the bytes of its shape", str(size), length)
        name = text_of(tensor.name)
        name = name if name and name.isprintable() else "tensor"
        if path not in self._files:
            self._files[path] = open_weight_file(path)
        return PlacedWeight(self._files[path], name, dtype, shape, offset or 0)

    def _path(self, name: str, location: str) -> str:
        """Return the path of a file in the folder, or below it."""
        path = os.path.realpath(os.path.join(self._folder, location)) if "\0" not in location else ""
        if not location or os.path.isabs(location) or not path.startswith(os.path.join(self._folder, "")):
            raise SourceError(
                f"cannot read tensor {short_repr(name)}: its file is not in the folder of the model",
                site=user_site(),
                expected="a path inside of the folder",
                got=short_repr(location),
                hint="put the file beside the model, and save the model with a relative path",
            )
        return path


def _whole(name: str, entries: dict[str, str], key: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise damaged(f"tensor {short_repr(name)} has no {key}", "a whole number", text)
    return int(text)
