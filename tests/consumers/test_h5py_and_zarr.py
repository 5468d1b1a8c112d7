"""Tensors as data sets in files: HDF5 by h5py, Zarr, and NumPy's own."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

import tenferro_runtime as tr
from tenferro_ad import variable
from tenferro_tensor_core import GradientError

A = np.random.default_rng(0).normal(size=(4, 6))


def test_hdf5(tmp_path: Path) -> None:
    x = tr.asarray(A)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("x", data=x)
        file["y"] = x * 2
        data[:2] = x[:2] + 1.0
        data[3, tr.asarray(2)] = x[0, 0]
        data.attrs["row"] = x[0]
        file.create_dataset("c", data=tr.astype(x, tr.complex64))
    want = A.copy()
    want[:2] += 1.0
    want[3, 2] = A[0, 0]
    with h5py.File(tmp_path / "a.h5") as file:
        assert tr.asarray(file["x"]).tolist() == want.tolist()
        assert tr.asarray(file["x"][1:, ::2]).tolist() == want[1:, ::2].tolist()
        assert tr.asarray(file["y"][()]).tolist() == (2 * A).tolist()
        assert file["x"][x[:, 0] > 0].tolist() == want[A[:, 0] > 0].tolist()
        assert file["x"].attrs["row"].tolist() == A[0].tolist() and file["c"].dtype == np.complex64


def test_zarr(tmp_path: Path) -> None:
    x = tr.asarray(A)
    array = zarr.create_array(store=tmp_path / "b.zarr", shape=(4, 6), dtype="f8", chunks=(2, 3))
    array[...] = x
    array[:2] = x[:2] + 1.0
    array[3, 2] = x[0, 0]
    array.oindex[tr.asarray([0, 2])] = x[:2]
    want = A.copy()
    want[:2] += 1.0
    want[3, 2] = A[0, 0]
    want[[0, 2]] = A[:2]
    read = zarr.open_array(store=tmp_path / "b.zarr", mode="r")
    assert tr.asarray(read).tolist() == want.tolist() and tr.asarray(read[1:]).tolist() == want[1:].tolist()
    other = zarr.create_array(store=tmp_path / "c.zarr", data=x)
    assert tr.asarray(other).tolist() == A.tolist()


def test_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", tr.asarray(A))
    np.savez(tmp_path / "x.npz", a=tr.asarray(A))
    assert tr.asarray(np.load(tmp_path / "x.npy")).tolist() == A.tolist()
    assert np.load(tmp_path / "x.npz")["a"].tolist() == A.tolist()


def test_values_that_are_differentiated_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(GradientError, match="detach"):
        file.create_dataset("x", data=variable(A))
    with pytest.raises(GradientError, match="detach"):
        zarr.create_array(store=tmp_path / "b.zarr", shape=(4, 6), dtype="f8")[...] = variable(A)
