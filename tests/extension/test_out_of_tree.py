"""A package outside the tree brings operations by entry points alone, and they work in every mode."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

ASSET = Path(__file__).parents[1] / "assets" / "bessel-ops"

USE = """
import numpy as np
import tenferro_runtime as tr
from bessel_ops import bessel_j, neighbours, spherical_bessel_j0
from scipy.special import jv, jvp, spherical_jn
from tenferro_ad import check_grads, grad, jvp as push, variable
from tenferro_runtime.extension import REGISTRY

assert REGISTRY.extensions()["bessel"] is False, "an extension is loaded only when something of it is needed"
x = tr.asarray(np.linspace(0.5, 4.0, 6))
raw = np.asarray(x)

np.testing.assert_allclose(np.asarray(bessel_j(x, order=1)), jv(1, raw))                      # concrete
assert REGISTRY.extensions()["bessel"] is True
f = lambda x: tr.sum(neighbours(bessel_j(x, order=1)) * x)
reference = lambda raw: (raw + np.roll(raw, -1)) * jvp(1, raw) + jv(1, raw) + np.roll(jv(1, raw), 1)

leaf = variable(x)                                                                             # eager
f(leaf).backward()
np.testing.assert_allclose(np.asarray(leaf.grad), reference(raw))
np.testing.assert_allclose(float(tr.compile(f)(x)), float(f(x)))                               # traced
for gradient in (grad(f), tr.compile(grad(f)), grad(tr.compile(f))):
    np.testing.assert_allclose(np.asarray(gradient(x)), reference(raw))
_, slope = push(f, (x,), (tr.ones_like(x),))                                                   # forward mode
np.testing.assert_allclose(float(slope), reference(raw).sum())
check_grads(f, (x,), order=2)

y = tr.asarray(np.linspace(0.0, 4.0, 6))
h = lambda y: tr.sum(tr.cos(spherical_bessel_j0(y * 2)) * y)                                      # by its expansion
np.testing.assert_allclose(np.asarray(spherical_bessel_j0(y)), spherical_jn(0, np.asarray(y)))
np.testing.assert_allclose(float(tr.compile(h)(y)), float(h(y)))
assert len(tr.compile(h).explain(y).steps) > 3, "its expansion is in the program, not a kernel of its own"
check_grads(h, (y,), order=2)
check_grads(tr.compile(h), (y,), order=2)
print("every mode agrees")
"""

MISSING = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from bessel_ops import bessel_j
from tenferro_tensor_core import RegistryError

try:
    bessel_j(np.ones(3), order=0)
except RegistryError as error:
    print(error)
"""


def run(script: str, *arguments: str, path: Path | None = None) -> str:
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    done = subprocess.run([sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(ASSET)]
    done = subprocess.run([*command, "--python", sys.executable], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def test_an_installed_family_works_in_every_mode(installed):
    assert run(USE, path=installed) == "every mode agrees\n"


def test_a_family_that_is_not_installed_is_named():
    told = run(MISSING, str(ASSET / "src"))
    assert "no installed distribution offers the extension 'bessel'" in told
    assert "[project.entry-points.'tenferro.extensions']" in told
