"""The applications of `benchmarks/applications.py`: eager and compiled they give what JAX gives."""

import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from workspace import ROOT

jax = pytest.importorskip("jax")
sys.path.append(str(ROOT / "benchmarks"))
APPLICATIONS = import_module("ad_applications").every()
record = import_module("ad_applications.record")
EAGER_TAKES_LONG = {"saddle point", "particle"}


def leaves(tree: Any) -> list[np.ndarray]:
    return [x for t in tree for x in leaves(t)] if isinstance(tree, (tuple, list)) else [np.asarray(tree)]


@pytest.mark.parametrize("name", APPLICATIONS)
def test_gives_what_jax_gives(name: str) -> None:
    application = APPLICATIONS[name]
    arguments = application.make(application.sizes[0], np.random.default_rng(0))
    with jax.enable_x64(True):
        wanted = leaves(jax.jit(application.task(record.for_jax()))(*arguments))
    task = application.task(record.for_tenferro())
    given = [tr.asarray(x) for x in arguments]
    for f in (tr.compile(task),) if name in EAGER_TAKES_LONG else (task, tr.compile(task)):
        for found, want in zip(leaves(f(*given)), wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-9)
