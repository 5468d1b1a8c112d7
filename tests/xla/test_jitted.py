"""StableHLO modules compiled by JAX: exact dtypes, donation, calls inside of JAX's own functions, public names only."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_xla import lower_to_stablehlo
from tenferro_xla._jitted import bind, jitted, put, wide_numbers

CPU = jax.local_devices(backend="cpu")[0]
X = np.linspace(0.0, 1.0, 8)


def module_of(f, *arrays):
    return lower_to_stablehlo(tr.trace(f, *map(tr.asarray, arrays)))


def test_wide_numbers_stay_wide_and_the_process_keeps_its_setting():
    run = jitted(module_of(lambda x: x * 2.0, X), device=CPU)
    (y,) = run(put(X, CPU))
    assert (y.dtype, y.devices(), jax.numpy.arange(2.0).dtype) == (np.float64, {CPU}, np.float32)
    np.testing.assert_array_equal(y, X * 2.0)
    assert jitted(module_of(lambda x: x * 2.0, X), device=CPU) is run


def test_the_memory_of_a_donated_array_is_gone():
    x = put(X + 0.0, CPU)
    (y,) = jitted(module_of(lambda x: x + 1.0, X), donate=(0,))(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, X + 1.0)


def test_a_module_is_called_inside_of_a_function_of_jax():
    module = module_of(lambda x: (tr.sin(x), tl.solve(tr.diag(x + 1.0), x)), X)

    def f(x):
        y, _, failed = bind(module, x)
        _, z, _ = bind(module, y)
        return y, z, failed

    with wide_numbers():
        lowered = jax.jit(f).lower(X)
        y, z, failed = map(np.asarray, jax.jit(f)(X))
    assert lowered.as_text().count("lapack_dgetrf") == 1  # one function for both calls
    assert not failed
    np.testing.assert_allclose(y, np.sin(X), rtol=1e-14)
    np.testing.assert_allclose(z, y / (y + 1.0), rtol=1e-14)
    with pytest.raises(TypeError, match=r"a StableHLO module takes \[float64\[8\]\], got \[.*float32\[8\]"):
        jax.jit(f)(X)


WITH_A_SUBSTITUTE = ["_places.py"]
"""Uses a name of jaxlib in `host_device`, which is JAX's own device where that name is missing."""


def test_only_public_names_of_jax_are_used():
    sources = Path(__file__).parents[2].glob("packages/*/src/**/*.py")
    private = re.compile(r"\bjaxlib\.\w|import jaxlib|from jaxlib|\bjax\._[a-z]|xla_client")
    assert [path.name for path in sources if private.search(path.read_text())] == WITH_A_SUBSTITUTE
