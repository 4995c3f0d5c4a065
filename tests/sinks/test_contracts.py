"""Every sink that keeps its result against the contract that all destinations keep."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import zarr
from safetensors import safe_open

from flowcompute.elements.destination import Destination
from flowcompute.sinks.array_sink import MemorySink, to_array
from flowcompute.sinks.callback_sink import callback
from flowcompute.sinks.npy_sink import NpySink
from flowcompute.sinks.raw_sink import RawSink
from flowcompute.sinks.save_sink import save
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES, Spec
from flowcompute.testing.contracts import DestinationContract


class TestMemory(DestinationContract):
    def make(self, folder: Path) -> Destination:
        return to_array()

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        return value


class TestNpy(DestinationContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, folder: Path) -> Destination:
        return save(folder / "y.npy")

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        assert value == str(folder / "y.npy")
        return np.load(value, allow_pickle=False)


class TestRaw(DestinationContract):
    def make(self, folder: Path) -> Destination:
        return save(folder / "y.bin")

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        assert value == str(folder / "y.bin")
        data = np.fromfile(value, spec.dtype)
        return data.reshape(-1, *spec.shape) if spec.stream is not None else data.reshape(spec.shape)


class TestHdf5(DestinationContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, folder: Path) -> Destination:
        return save(folder / "y.h5", key="a/x")

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        with h5py.File(value) as file:
            return np.asarray(file["a/x"][...])


class TestSafetensors(DestinationContract):
    def make(self, folder: Path) -> Destination:
        return save(folder / "y.safetensors", key="x")

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        with safe_open(value, "numpy") as file:
            return np.asarray(file.get_tensor("x"))


class TestZarr(DestinationContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, folder: Path) -> Destination:
        return save(folder / "y.zarr", chunk=3)

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        assert value == str(folder / "y.zarr")
        return np.asarray(zarr.open_array(value, mode="r")[...])


class TestCallback(DestinationContract):
    def make(self, folder: Path) -> Destination:
        self.seen: list[np.ndarray] = []
        return callback(self.seen.append)

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        assert value is None
        if spec.stream is None:
            return np.asarray(self.seen[0])
        return np.concatenate([np.empty((0, *spec.shape), spec.dtype), *self.seen])


def test_the_functions_give_these_classes() -> None:
    assert type(to_array()) is MemorySink
    assert type(save("x.npy")) is NpySink
    assert type(save("x.raw")) is RawSink
