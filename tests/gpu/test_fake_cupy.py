"""The simulated CuPy has no name that the real one lacks, and takes no call that the real one refuses."""

import json
import subprocess
import sys
import venv

import numpy as np
import pytest

from cupy_interface import FOLDER, NAMES, REQUIREMENT
from cupy_uses import Use, find_wrong, uses
from fake_cupy import CUDARuntimeError, Device, Event, FakeCupy, Stream, fake_cupyx


@pytest.fixture
def cupy():
    return FakeCupy()


def test_names_that_only_numpy_has_are_absent(cupy):
    absent = [n for n in dir(np) if callable(getattr(np, n)) and not n.startswith("_") and n not in NAMES["cupy"]]
    assert len(absent) > 40 and {"insert", "vecdot", "spacing"} <= set(absent)
    assert [n for n in absent if hasattr(cupy, n)] == []
    assert hasattr(cupy, "sum") and hasattr(cupy.linalg, "svd")


def test_names_that_only_scipy_has_are_absent():
    modules = fake_cupyx()
    for name, there, absent in (
        ("cupyx.scipy.linalg", "lu_factor", "expm_frechet"),
        ("cupyx.scipy.fft", "rfft", "set_backend"),
        ("cupyx.scipy.special", "erf", "mathieu_a"),
    ):
        assert hasattr(modules[name], there) and not hasattr(modules[name], absent)


def test_attributes_that_only_arrays_of_numpy_have_are_absent(cupy):
    x = cupy.zeros(3)
    assert [
        n for n in dir(np.ndarray) if not n.startswith("_") and n not in NAMES["cupy.ndarray"] and hasattr(x, n)
    ] == []
    assert x.sum().shape == () and not hasattr(x, "setflags")


@pytest.mark.parametrize(
    "call",
    [
        lambda cupy: cupy.take(cupy.zeros(3), [0], mode="clip"),
        lambda cupy: cupy.linalg.svd(cupy.zeros((2, 2)), hermitian=True),
        lambda cupy: cupy.linalg.qr(cupy.zeros((2, 2)), "reduced", 1),
        lambda cupy: cupy.empty(3, like=None),
        lambda cupy: cupy.clip(cupy.zeros(3)),
        lambda cupy: cupy.zeros(3).set(np.zeros(3), None, "F"),
        lambda cupy: cupy.cuda.runtime.memcpyPeerAsync(0, 0, 0),
        lambda cupy: cupy.cuda.alloc_pinned_memory(),
        lambda cupy: Stream(blocking=True),  # type: ignore[call-arg]
        lambda cupy: Event(timing=True),  # type: ignore[call-arg]
        lambda cupy: Device(0, 1),  # type: ignore[call-arg]
    ],
    ids=map(str, range(11)),
)
def test_calls_that_cupy_refuses_are_refused(cupy, call):
    with pytest.raises(TypeError, match=f"of CuPy {NAMES['version']}: "):
        call(cupy)


def test_what_the_fake_adds_by_itself_is_in_cupy(cupy):
    assert set(vars(cupy.cuda.runtime)) <= set(NAMES["cupy.cuda.runtime"])
    assert issubclass(CUDARuntimeError, RuntimeError)


def test_what_the_packages_use_is_in_cupy():
    found = list(uses())
    assert len(found) > 250 and sum(use.call is not None for use in found) > 150
    assert [wrong for use in found if (wrong := find_wrong(use, NAMES))] == []


def test_uses_that_cupy_refuses_are_found():
    assert "has no insert" in find_wrong(Use("here", "cupy", ("insert",), None), NAMES)
    assert "unexpected keyword" in find_wrong(Use("here", "cupy", ("sort",), (1, ("order",))), NAMES)
    assert "too many" in find_wrong(Use("here", "cupy", ("linalg", "svd"), (4, ())), NAMES)


def read(requirement, folder):
    """The names of a wheel; neither a GPU nor CUDA is needed to install and to read it."""
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), requirement, "scipy"]
    subprocess.run(install, check=True)
    done = subprocess.run([python, FOLDER / "read_interface.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.packaging
def test_the_names_are_those_of_the_wheel(tmp_path):
    assert read(REQUIREMENT, tmp_path) == NAMES
