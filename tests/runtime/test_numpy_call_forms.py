"""Calls as NumPy's users write them: functions, methods and keys on concrete, recorded and traced values."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_tensor_core import ArgumentError

M = np.arange(12.0).reshape(3, 4)
V = np.asarray([4.0, 2.0, 3.0, 1.0])
H = np.asarray([[2.0, 9.0, 9.0], [0.5, 3.0, 9.0], [0.25, 0.5, 4.0]])
C = np.arange(8.0)

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "clip": lambda xp, a: xp.clip(a(M), a_min=2, a_max=7),
    "cross": lambda xp, a: xp.cross(a(H), a(M[:, :3]), axisa=0, axisb=1, axisc=0),
    "cross, axis=None": lambda xp, a: xp.cross(a(H), a(M[:, :3]), axisa=0, axis=None),
    "T of a vector": lambda xp, a: a(H)[:, 0].T,
    "T of a number": lambda xp, a: a(H)[0, 0].T,
    "flat": lambda xp, a: xp.stack([x * x for x in a(H).T.flat]),
    "cross of stacks": lambda xp, a: xp.cross(a(M[:, :3]), a(M[:, :3] + 1), -1, -1, 0),
    "moveaxis": lambda xp, a: xp.moveaxis(a(M), source=0, destination=1),
    "partition": lambda xp, a: xp.partition(a(V), kth=2)[2],
    "repeat": lambda xp, a: xp.repeat(a(M), repeats=2, axis=1),
    "std": lambda xp, a: xp.std(a(M), axis=1, ddof=1),
    "swapaxes": lambda xp, a: xp.swapaxes(a(M), axis1=0, axis2=1),
    "take": lambda xp, a: xp.take(a(M), indices=[2, 0], axis=1),
    "tile": lambda xp, a: xp.tile(a(V), reps=(2, 1)),
    "var": lambda xp, a: xp.var(a(M), ddof=2),
    "method var": lambda xp, a: a(M).var(axis=0, ddof=1),
    "method copy": lambda xp, a: a(M).T.copy("K") + a(M).T.copy(order="F"),
    "method repeat": lambda xp, a: a(V).repeat(repeats=3),
    "fft": lambda xp, a: xp.fft.fft(a(V), 8, 0, "ortho"),
    "rfft": lambda xp, a: xp.fft.rfft(a(M), 3, 0),
    "irfft": lambda xp, a: xp.fft.irfft(a(V), 5),
    "fftn": lambda xp, a: xp.fft.fftn(a(M), (2, 5), (0, 1)),
    "fft2": lambda xp, a: xp.fft.fft2(a(M), (2, 5)),
    "fftshift": lambda xp, a: xp.fft.fftshift(a(M), 1),
    "fftfreq": lambda xp, a: xp.fft.fftfreq(5, 0.5),
    "eigvalsh": lambda xp, a: xp.linalg.eigvalsh(a(H), "U"),
    "eigh": lambda xp, a: xp.linalg.eigh(a(H), "L")[0],
    "svd": lambda xp, a: xp.linalg.svd(a(H), False, False),
    "singular values": lambda xp, a: xp.linalg.svd(a(M), compute_uv=False),
    "matrix_power": lambda xp, a: xp.linalg.matrix_power(a(H), n=2),
    "qr": lambda xp, a: abs(xp.linalg.qr(a(M), "complete")[1]),
    "row_stack": lambda xp, a: xp.vstack([a(V), a(V)]) if xp is np else xp.row_stack([a(V), a(V)]),
    "r_": lambda xp, a: xp.r_[a(V), 0, 1:7:2],
    "r_ of ranges": lambda xp, a: xp.r_[0:1:5j, 2],
    "r_ along an axis": lambda xp, a: xp.r_["0,2", a(V), a(V)],
    "r_ with axes in front": lambda xp, a: xp.r_["0,2,0", a(V), a(V)],
    "c_": lambda xp, a: xp.c_[a(V), a(C[:4])],
    "c_ of matrices": lambda xp, a: xp.c_[a(M), a(M), a(M[:, 0])],
    "tuple in a key": lambda xp, a: a(M)[:, (0, 2)],
    "tuples in a key": lambda xp, a: a(M)[(0, 2), (1, 3)],
    "masks in a key": lambda xp, a: a(M)[:, (True, False, True, False)],
    "range in a key": lambda xp, a: a(M)[:, range(3, 0, -1)],
    "range as a key": lambda xp, a: a(M)[range(2)],
    "empty tuple in a key": lambda xp, a: a(M)[:, ()],
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_mean_the_same_as_in_numpy(name: str) -> None:
    form = FORMS[name]
    wanted = np.asarray(form(np, lambda x: x))
    found = form(tr, tr.asarray)
    assert type(found) is tr.Tensor and found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-12)


@pytest.mark.parametrize("name", ["cross", "var", "fft", "svd", "r_", "tuples in a key", "range in a key"])
def test_forms_are_traced_and_differentiated(name: str) -> None:
    form = FORMS[name]

    def of(t: Any) -> Any:
        return tr.sum(abs(form(tr, lambda x: tr.asarray(x) + t)))

    found = tr.compile(grad(of))(tr.asarray(0.5))
    around = [float(np.abs(form(np, lambda x, t=t: x + t)).sum()) for t in (0.5 - 1e-6, 0.5 + 1e-6)]
    assert float(found) == pytest.approx((around[1] - around[0]) / 2e-6, abs=1e-5)


def test_writes_take_tuples_and_ranges() -> None:
    x, wanted = tr.asarray(M, copy=True), M.copy()
    for y in (x, wanted):
        y[:, (0, 2)] = 5.0
        y[range(1), 1] += 2.0
    np.testing.assert_array_equal(np.asarray(x), wanted)


def test_arguments_after_the_first_have_names() -> None:
    """Where a parameter has NumPy's name, it may be passed by it."""
    seen = 0
    for ours, theirs in ((tr, np), (tr.linalg, np.linalg), (tr.fft, np.fft)):
        for name in {*ours.__all__} & {*dir(theirs)}:
            f, g = getattr(ours, name), getattr(theirs, name)
            if not callable(f) or isinstance(f, type) or isinstance(g, np.ufunc) or not hasattr(f, "__name__"):
                continue
            try:
                known = [*inspect.signature(g).parameters.values()][1:]
            except ValueError:
                continue
            own = inspect.signature(f).parameters
            if any(p.kind is p.VAR_KEYWORD for p in own.values()):
                continue  # which are those of a function that it calls
            for p in known:
                if p.name in own and p.kind is p.POSITIONAL_OR_KEYWORD:
                    seen += 1
                    assert own[p.name].kind is not p.POSITIONAL_ONLY, f"{name}({p.name}=)"
    assert seen > 100


def test_a_string_in_front_of_parts_consists_of_numbers() -> None:
    with pytest.raises(
        ArgumentError, match="the string in front of the parts is \"axis\".*not 'c'; matrices are arrays"
    ):
        tr.r_["c", [1, 2]]


def test_a_dtype_is_numpy_s() -> None:
    assert tr.dtype("float32") == tr.float32 and isinstance(tr.ones(2).dtype, tr.dtype)


def test_devices_are_a_tuple_that_adds_to_lists() -> None:
    devices = tr.__array_namespace_info__().devices()
    assert isinstance(devices, tuple) and tr.ones(2).device in devices
    assert [None, *devices] == [None] + devices == [None] + [*devices]
    assert [*devices, None] == devices + [None] and (*devices, None) == devices + (None,)
    with pytest.raises(TypeError):
        devices + 1


def test_the_first_device_has_numpy_s_name() -> None:
    device = tr.ones(2).device
    assert device == "cpu" and np.ones(2).device == device and not device != "cpu"
    assert len({device, "cpu"}) == 1 and tr.ComputeDevice("cpu:1") != "cpu" and device != "cpu:0" and device != 0


def test_concrete_values_have_strides_and_flags_and_others_do_not() -> None:
    x = tr.zeros((3, 4))
    assert x.strides == (32, 8) and x.T.strides == (8, 32) and x.flags.c_contiguous and not x[:, :2].flags.c_contiguous
    assert tr.asarray(1.0).strides == () and tr.zeros(0).flags.c_contiguous
    with pytest.raises(AttributeError, match="use nothing: layouts of memory are not part of a value"):
        tr.compile(lambda x: x.strides)(x)
    assert x.flags.writeable and x.T.flags["F_CONTIGUOUS"] and x.T.flags["C"] is False and "owndata=" in repr(x.flags)
    # NumPy would take it before `__array__`, and then holds on to the value instead of the memory, which may move.
    assert not hasattr(x, "__array_interface__")


def test_arrays_of_single_numbers_can_be_written_to() -> None:
    for x in (
        tr.asarray(np.float64(3.0)),
        np.average(np.full(3, 3.0), weights=tr.ones(3)),
        tr.from_dlpack(np.asarray(3.0)),
    ):
        y = np.asarray(x)
        y *= 0.5
        assert y == 1.5 and np.asarray(x, np.float32).dtype == np.float32


def test_a_library_that_the_adapter_does_not_know_remains_usable(tmp_path: Any) -> None:
    (tmp_path / "einops.py").write_text("answer = 42\n")
    code = "import tenferro_runtime, einops; print(einops.answer)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "42\n", done.stderr
