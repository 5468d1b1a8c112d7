"""Makers of kernels receive numbers, however the program around them is compiled, unless they are `sized`."""

import logging
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_cpu import CpuPool
from tenferro_runtime.extension import REGISTRY, Linear, Spec, primitive
from tenferro_runtime.running import fusion

X = np.linspace(0.1, 1.3, 4)
SEEN: list[Any] = []


@primitive(family="lattice-ops.gauss.v1")
def gauss(x: Spec, *, axis: int) -> Spec:
    """The integral of samples at Gauss-Legendre nodes along an axis."""
    return x.with_(shape=x.shape[:axis] + x.shape[axis + 1 :])


@primitive(family="lattice-ops.spread.v1")
def spread(g: Spec, *, axis: int, n: Any) -> Spec:
    """The transpose of `gauss` for `n` nodes."""
    return g.with_(shape=(*g.shape[:axis], n, *g.shape[axis:]))


def seen(*specs: Spec) -> None:
    SEEN.extend([n for s in specs for n in s.shape])


def make_gauss(ins: Any, outs: Any, *, axis: int) -> Any:
    seen(*ins, *outs)
    weights = leggauss(ins[0].shape[axis])[1]
    return lambda x: np.asarray(np.tensordot(x, weights, (axis, 0)))


def make_spread(ins: Any, outs: Any, *, axis: int, n: Any) -> Any:
    seen(*ins, *outs)
    SEEN.append(n)
    weights = leggauss(outs[0].shape[axis])[1]
    return lambda g: np.moveaxis(np.multiply.outer(g, weights), -1, axis)


REGISTRY.kernel(gauss, "cpu", make_gauss)
REGISTRY.kernel(spread, "cpu", make_spread)
REGISTRY.rule(gauss, Linear(x=lambda g, x_spec, axis: spread(g, axis=axis, n=x_spec.shape[axis])))
REGISTRY.rule(spread, Linear(g=lambda g, axis, n: gauss(g, axis=axis)))


def scanned(x: Any) -> Any:
    return tr.scan(lambda c, row: (c + gauss(row * c, axis=0), row), tr.asarray(1.0), tr.outer(x, x))[0]


PROGRAMS = {
    "alone": lambda x: gauss(x, axis=0),
    "fused": lambda x: tr.exp(gauss(x * x, axis=0)) + x,
    "loop": lambda x: tr.fori_loop(0, 3, lambda i, c: c * 2 + gauss(x * c, axis=0), tr.asarray(0.5)),
    "scan": scanned,
    "while": lambda x: tr.while_loop(lambda c: tr.sum(c) < 9, lambda c: c + gauss(c, axis=0), tr.abs(x) + 1),
    "branch": lambda x: tr.cond(x[0] > 0, lambda x: gauss(x, axis=0), lambda x: x[0], x),
    "lanes": lambda x: tr.vmap(lambda r: gauss(r * x, axis=0))(tr.outer(x, x)),
    "gradient": grad(lambda x: gauss(tr.sin(x) * x, axis=0)),
    "gradient of a loop": grad(scanned),
}


@pytest.fixture(autouse=True)
def fresh() -> None:
    SEEN.clear()


@pytest.mark.parametrize("deterministic", [False, True], ids=["any order", "deterministic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_ask_for_numbers(name: str, deterministic: bool, caplog: pytest.LogCaptureFixture) -> None:
    f = PROGRAMS[name]
    g = tr.compile(f, deterministic=deterministic)
    for n in (4, 4, 3, 4):
        x = tr.asarray(X[:n])
        np.testing.assert_allclose(np.asarray(g(x)), np.asarray(f(x)), rtol=1e-13)
        fusion.wait()
    str(g.explain(tr.asarray(X)))
    assert g.cache_info().traces == 1
    assert SEEN and {type(n) for n in SEEN} == {int}
    assert not caplog.records


def test_other_ways_to_run_ask_for_numbers(tmp_path: Any) -> None:
    f, h = PROGRAMS["gradient of a loop"], PROGRAMS["gradient"]
    g, x = tr.compile(f), tr.asarray(X)
    want = np.asarray(f(x))
    g.profile(x)
    assert g.find_nan(x) is None
    g.save(tmp_path / "g", x)
    with CpuPool(index=2):
        np.testing.assert_allclose(np.asarray(tr.compile(h)(x.with_compute_device("cpu:2"))), np.asarray(h(x)))
    np.testing.assert_allclose(np.asarray(tr.compile(f, placement="auto")(x)), want, rtol=1e-13)
    np.testing.assert_allclose(np.asarray(tr.load(tmp_path / "g")(x)), want, rtol=1e-13)
    assert {type(n) for n in SEEN} == {int}


def test_a_program_that_is_not_lowered_says_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake in the compiler costs speed only: it is one line, with the traceback for those who ask for it."""
    from tenferro_runtime import lowering

    def broken(*args: Any, **options: Any) -> Any:
        raise KeyError("lost")

    monkeypatch.setattr(lowering, "lower", broken)
    g = tr.compile(lambda x: tr.fori_loop(0, 3, lambda i, c: c * 2 + tr.sum(x), tr.asarray(0.5)))
    with caplog.at_level(logging.DEBUG, logger="tenferro"):
        for _ in range(3):
            assert float(g(tr.ones(3))) == 25.0
            fusion.wait()
        assert "KeyError: 'lost'" in g.explain(tr.ones(3)).form
    warned = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert warned
    assert {r.getMessage().partition("it runs step by step")[2] for r in warned} == {": KeyError: 'lost'"}
    assert {r.levelno for r in caplog.records if r.exc_info} == {logging.DEBUG}
