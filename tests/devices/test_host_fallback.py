"""What an accelerator has no kernels for is refused, or computed on the CPU where that is allowed."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.backend import BareBackend
from simulated.installed import simulated
from tenferro_ad import grad, jvp, value_and_grad
from tenferro_runtime import fft, linalg
from tenferro_tensor.transfers import Move, booking
from tenferro_tensor_core import NumericalError, TransferForbiddenError, UnsupportedError

RNG = np.random.default_rng(7)
S = RNG.standard_normal((2, 4, 4)) + 4 * np.eye(4)
B = RNG.standard_normal((2, 4, 3))

CASES: dict[str, Any] = {
    "solve": lambda s, b: linalg.solve(s, b),
    "svd": lambda s, b: linalg.svd(s)[1],
    "svd vectors": lambda s, b: tr.abs(linalg.svd(s)[0]),
    "eigh": lambda s, b: linalg.eigh(s + s.mT)[0],
    "eig": lambda s, b: tr.abs(linalg.eigvals(s)),
    "qr": lambda s, b: linalg.qr(s)[1] ** 2,
    "fft": lambda s, b: tr.abs(fft.fft(b)),
    "rfft": lambda s, b: fft.irfft(fft.rfft(s) * 2.0, n=4),
    "dct": lambda s, b: fft.dct(b),
}


def there(x: Any) -> Any:
    return tr.asarray(x).to_device("sim:1")


def here(x: Any) -> Any:
    return np.asarray(x.to_device("cpu:0"))


def loss(f: Any) -> Any:
    return lambda s, b: tr.sum(f(s, b) ** 2)


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_the_cpu(name: str) -> None:
    f = CASES[name]
    wanted = np.asarray(f(tr.asarray(S), tr.asarray(B)))
    slopes = grad(loss(f))(tr.asarray(S), tr.asarray(B))
    with simulated(backend=BareBackend), tr.host_fallback():
        s, b = there(S), there(B)
        found = f(s, b)
        assert str(found.device) == "sim:1"
        np.testing.assert_allclose(here(found), wanted, atol=1e-12)
        np.testing.assert_allclose(here(tr.compile(f)(s, b)), wanted, atol=1e-12)
        np.testing.assert_allclose(here(grad(loss(f))(s, b)), slopes, atol=1e-10)
        np.testing.assert_allclose(here(tr.compile(grad(loss(f)))(s, b)), slopes, atol=1e-10)


def test_forward_mode_and_second_order() -> None:
    f = loss(CASES["solve"])
    cpu = [tr.asarray(S), tr.asarray(B)]
    _, wanted = jvp(lambda s: grad(f)(s, cpu[1]), (cpu[0],), (cpu[0],))
    with simulated(backend=BareBackend), tr.host_fallback():
        s, b = there(S), there(B)
        _, found = jvp(lambda s: grad(f)(s, b), (s,), (s,))
        np.testing.assert_allclose(here(found), wanted, atol=1e-10)


@pytest.mark.parametrize("name", [n for n in CASES if n != "dct"])
def test_without_permission_the_error_names_the_scope(name: str) -> None:
    with simulated(backend=BareBackend):
        s, b = there(S), there(B)
        for f in (CASES[name], tr.compile(CASES[name])):
            with pytest.raises(UnsupportedError, match=r"has no kernel for sim:1; .*host_fallback\(\)"):
                f(s, b)
            with tr.host_fallback():
                f(s, b)
            with pytest.raises(UnsupportedError, match=r"has no kernel for sim:1; .*host_fallback\(\)"):
                f(s, b)  # what was made inside of the scope asks again


def test_each_copy_is_logged_with_its_line_and_bytes() -> None:
    with simulated(backend=BareBackend):
        s, b = there(S), there(B)
        moves: list[Move] = []
        with tr.host_fallback(), booking(moves.append):
            linalg.svd(s)
        ways = [(str(m.source), str(m.target), m.nbytes) for m in moves]
        assert ways.count(("sim:1", "host", S.nbytes)) == 1
        assert sorted(way for way in ways if way[1] == "sim:1") == [
            ("host", "sim:1", n) for n in (S[..., 0].nbytes, S.nbytes, S.nbytes)
        ]
        assert all("test_host_fallback.py" in m.line for m in moves)
        with tr.host_fallback(), tr.transfers() as log:
            tr.cumulative_sum(s, axis=0)
        assert log.count == 0  # there is a kernel
        with tr.host_fallback(), tr.no_transfers(), pytest.raises(TransferForbiddenError, match="from sim:1 to host"):
            linalg.solve(s, b)


def test_errors_of_the_matrices_stay() -> None:
    with simulated(backend=BareBackend), tr.host_fallback():
        with pytest.raises(NumericalError, match=r"matrix \(1,\) of the stack is singular"):
            linalg.solve(there(S * [[[1.0]], [[0.0]]]), there(B))


def test_a_program_of_several_devices() -> None:
    def f(s: Any, b: Any) -> Any:
        found = linalg.solve(s.to_device("sim:2"), b.to_device("sim:2")) * 2.0
        return tr.sum(found.to_device("cpu:0") + linalg.solve(s, b))

    cpu = tr.asarray(S), tr.asarray(B)
    wanted = 3.0 * np.linalg.solve(S, B).sum()
    with simulated(backend=BareBackend), tr.host_fallback():
        for run in (f, tr.compile(f)):
            assert float(run(*cpu)) == pytest.approx(wanted)
            assert float(value_and_grad(run)(*cpu)[0]) == pytest.approx(wanted)
