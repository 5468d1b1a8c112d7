"""The programs of `benchmarks/loops.py`: compiled they give what their NumPy twins give, and their derivatives."""

import os
import subprocess
import sys
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from workspace import ROOT

sys.path.append(str(ROOT / "benchmarks"))
record = import_module("loop_programs.record")
PROGRAMS = import_module("loop_programs").every()
DIFFERENTIATED = [name for name, program in PROGRAMS.items() if program.gradient]
STEP = 1e-6


def results(r: Any) -> list[Any]:
    return [np.asarray(x) for x in (r if isinstance(r, tuple) else (r,))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_program_gives_what_its_twin_gives_at_two_sizes(name: str) -> None:
    program, xp = PROGRAMS[name], record.for_tenferro()
    compiled = tr.compile(partial(program.traced, xp))
    for extent in (program.sizes["tiny"], program.sizes["tiny"] + 3):
        arguments = program.make(extent, np.random.default_rng(extent))
        given = [x.copy() for x in arguments]
        expected, found = results(program.numpy(*arguments)), results(compiled(*map(tr.asarray, arguments)))
        assert [x.shape for x in found] == [x.shape for x in expected]
        for ours, theirs in zip(found, expected):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max(initial=1e-3))
            assert np.isfinite(theirs).all()
        assert all(map(np.array_equal, arguments, given))
    assert compiled.cache_info().traces == 1


def loss(program: Any, arguments: list[Any]) -> Any:
    """The sum of the squares of the results of the NumPy twin."""
    return sum(np.sum(np.abs(r) ** 2) for r in results(program.numpy(*arguments)))


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradient_is_the_derivative_of_the_twin_along_a_line(name: str) -> None:
    program, xp = PROGRAMS[name], record.for_tenferro()
    arguments = program.arguments("tiny")
    f = tr.compile(value_and_grad(record.loss_of(xp, program.traced), argnums=program.gradient))
    value, gradients = f(*map(tr.asarray, arguments))
    rng = np.random.default_rng(1)
    along = {
        i: rng.normal(size=arguments[i].shape) * (1 + 1j if arguments[i].dtype.kind == "c" else 1)
        for i in program.gradient
    }

    def moved(step: float) -> Any:
        return loss(program, [x + step * along[i] if i in along else x for i, x in enumerate(arguments)])

    slope = sum(np.sum(along[i].conj() * np.asarray(g)).real for i, g in zip(program.gradient, gradients))
    size = sum(np.sum(np.abs(along[i] * np.asarray(g))) for i, g in zip(program.gradient, gradients))
    np.testing.assert_allclose(np.asarray(value), moved(0.0), rtol=1e-9)
    assert slope == pytest.approx((moved(STEP) - moved(-STEP)) / (2 * STEP), rel=2e-5, abs=2e-6 * size)
    assert size > 0


def test_every_program_has_the_sizes_that_the_benchmark_runs() -> None:
    assert all("tiny" in program.sizes and len(program.sizes) >= 3 for program in PROGRAMS.values())


def test_the_benchmark_runs() -> None:
    pytest.importorskip("jax")
    command = [sys.executable, str(ROOT / "benchmarks" / "loops.py"), "--only", "^stencils/life", "--size", "tiny"]
    options = ["--repeat", "2", "--first", "--limit", "1000"]  # a busy machine is no reason to leave a row out
    done = subprocess.run([*command, *options], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ms", "life", "geometric", "stencils", "all"]
