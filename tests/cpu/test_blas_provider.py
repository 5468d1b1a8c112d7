"""The choice of a BLAS, in fresh processes: OpenBLAS decides once, when it is loaded."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tenferro_cpu
from native_rooms import compiled
from tenferro_cpu.native.threads import _blas

LIBRARIES = _blas.libraries()
wide = pytest.mark.skipif(
    compiled is None
    or not _blas.runs_wide()
    or not any("scipy_openblas" in path.name for path in _blas._carried("scipy"))
    or not LIBRARIES
    or LIBRARIES[0].name != "openblas",
    reason="needs the C extension, an AVX-512 processor, and the OpenBLAS that SciPy carries from 1.14 on",
)

OVERLOOKED = """
import os
import numpy as np
del os.environ["OPENBLAS_CORETYPE"]  # as on a processor that NumPy's OpenBLAS does not know
"""
CHECK = """
import tenferro_cpu
from tenferro_cpu.native.threads import _blas
from tenferro_tensor import tensor, catalog as c
x = np.random.default_rng(0).normal(size=(100, 100))
y = c.dot_general(tensor(x), tensor(x + 1), contract=((1,), (0,)), batch=((), ()))
np.testing.assert_allclose(y.data, x @ (x + 1), rtol=1e-10, atol=1e-10)
got = _blas.provider()
"""


def run(script: str, **environment: str) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in (_blas.BLAS_VARIABLE, _blas.CORE_VARIABLE)}
    environment = {_blas.BLAS_VARIABLE: "avx512"} | environment
    done = subprocess.run(
        [sys.executable, "-c", script], env=clean | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@wide
def test_wide_kernels_where_numpy_s_copy_overlooked_them() -> None:
    run(OVERLOOKED + CHECK + """
assert not got.own and got.library.core == "SkylakeX" and "scipy" in got.library.path, got
assert "OPENBLAS_CORETYPE" not in os.environ
assert "Haswell" in tenferro_cpu.info()["products"]["why"]
import scipy.linalg.blas
paths = [library.path for library in _blas.libraries()]
assert len(paths) == len(set(paths)) == 2, "SciPy takes the copy that is loaded already"
assert {library.core for library in _blas.libraries()} == {"Haswell", "SkylakeX"}
""", OPENBLAS_CORETYPE="Haswell")  # fmt: skip


@wide
def test_the_switch_leaves_numpy_s_copy() -> None:
    text = "assert got.own and got.library.core == 'Haswell' and 'TENFERRO_CPU_BLAS' in got.why, got"
    run(OVERLOOKED + CHECK + text, OPENBLAS_CORETYPE="Haswell", TENFERRO_CPU_BLAS="default")


@wide
def test_a_core_that_the_user_names_stays() -> None:
    run("import numpy as np" + CHECK + "assert got.own and got.why == 'OPENBLAS_CORETYPE is set', got",
        OPENBLAS_CORETYPE="Haswell")  # fmt: skip


@wide
def test_a_copy_that_was_loaded_before_stays() -> None:
    text = "assert got.own and 'set OPENBLAS_CORETYPE=SkylakeX in the environment' in got.why, got"
    run(OVERLOOKED.replace("del", "import scipy.linalg\ndel") + CHECK + text, OPENBLAS_CORETYPE="Haswell")


@wide
def test_a_wide_copy_that_was_loaded_before_is_taken() -> None:
    start = OVERLOOKED.replace("del", "os.environ['OPENBLAS_CORETYPE'] = 'SkylakeX'\nimport scipy.linalg\ndel")
    run(start + CHECK + "assert not got.own and got.library.core == 'SkylakeX', got", OPENBLAS_CORETYPE="Haswell")


@wide
@pytest.mark.parametrize("family, expected", [("26", False), ("25", True)])
def test_by_itself_only_where_vector_units_are_wide(family: str, expected: bool) -> None:
    """As on a processor of AMD of that family."""
    start = (
        OVERLOOKED
        + f"""
from tenferro_cpu.native.threads import _blas
seen = _blas.processor() | {{"vendor_id": "AuthenticAMD", "cpu family": "{family}"}}
_blas.processor = lambda: seen
"""
    )
    run(start + CHECK + f"assert got.own is {expected}, got", OPENBLAS_CORETYPE="Haswell", TENFERRO_CPU_BLAS="auto")


def test_without_the_extension_products_are_numpy_s() -> None:
    pure = "import numpy as np\nfrom tenferro_cpu.native.threads import _blas\n_blas.compiled = None\n"
    run(pure + "got = _blas.provider()\nassert got.own and 'without the C extension' in got.why, got")


def test_numpy_s_copy_by_name() -> None:
    run("import numpy as np" + CHECK + "assert got.own and 'numpy' in got.why, got", TENFERRO_CPU_BLAS="numpy")


@pytest.mark.skipif(
    compiled is None or not any("scipy_openblas" in path.name for path in _blas._carried("scipy")),
    reason="needs the C extension, and the OpenBLAS that SciPy carries from 1.14 on",
)
@pytest.mark.parametrize("before", ["", "import scipy.linalg\n"])
def test_scipy_s_copy_by_name(before: str) -> None:
    """Loaded already or not, with the kernels that it chooses."""
    text = "assert not got.own and 'scipy' in got.library.path and 'names it' in got.why, got"
    run(before + "import numpy as np" + CHECK + text, TENFERRO_CPU_BLAS="scipy")


@pytest.mark.skipif(compiled is None, reason="needs the C extension")
def test_a_copy_that_is_not_there() -> None:
    text = """
import numpy as np
from tenferro_cpu.native.threads import _blas
from tenferro_tensor_core import BackendUnavailableError
_blas._carried = lambda *packages: iter(())
try:
    _blas.provider()
except BackendUnavailableError as error:
    assert "TENFERRO_CPU_BLAS=scipy names a BLAS that is not installed; there is numpy" in str(error)
else:
    raise AssertionError("a copy was found")
"""
    run(text, TENFERRO_CPU_BLAS="scipy")


def test_a_name_of_no_blas() -> None:
    text = """
from tenferro_cpu.native.threads import _blas
from tenferro_tensor_core import ArgumentError
try:
    _blas.provider()
except ArgumentError as error:
    assert str(error).startswith("TENFERRO_CPU_BLAS='atlas' names no BLAS; the choices are auto, default"), error
else:
    raise AssertionError("it was taken")
"""
    run(text, TENFERRO_CPU_BLAS="atlas")


def test_the_report_names_every_library() -> None:
    report = tenferro_cpu.info()
    assert set(report["products"]["libraries"]) == {library.path for library in _blas.libraries()}
    assert report["native"] is True or isinstance(report["native"], str)


@pytest.mark.skipif(not LIBRARIES, reason="needs a BLAS whose threads can be set")
def test_threads_can_be_read_and_set() -> None:
    library = LIBRARIES[0]
    before = library.get_threads()
    try:
        library.set_threads(1)
        assert library.get_threads() == 1
    finally:
        library.set_threads(before)


def test_a_library_that_is_none(tmp_path: object) -> None:
    assert _blas._open("/nowhere/libopenblas.so") is None


CHOSEN = """
import numpy as np, tenferro_cpu, tenferro_runtime as tr
from tenferro_cpu.native.threads import _blas
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, RegistryError
import pytest
{use}
x = np.arange(40000.0).reshape(200, 200) / 40000
np.testing.assert_allclose(np.asarray(tr.asarray(x) @ tr.asarray(x)), x @ x, rtol=1e-12)
chosen = _blas.provider()
assert _blas.carried_by("{name}", chosen.library) and chosen.own == ("{name}" == "numpy"), chosen
tenferro_cpu.use_blas("{name}")
with pytest.raises(RegistryError, match="already; call it before the first product"):
    tenferro_cpu.use_blas("{other}")
with pytest.raises(BackendUnavailableError, match="names a BLAS that is not installed; there is numpy, scipy"):
    _blas._files = lambda name: iter(map(str, _blas._carried(name)) if name == "scipy" else ())
    tenferro_cpu.use_blas("blis")
with pytest.raises(ArgumentError, match="choose numpy, scipy, mkl or blis"):
    tenferro_cpu.use_blas("atlas")
"""


@pytest.mark.skipif(compiled is None or not LIBRARIES, reason="needs the C extension and wheels with a BLAS")
@pytest.mark.parametrize("by", ["function", "variable"])
@pytest.mark.parametrize(("name", "other"), [("numpy", "scipy"), ("scipy", "numpy")])
def test_a_blas_is_chosen_by_name(by: str, name: str, other: str) -> None:
    if not list(_blas._carried("scipy")):
        pytest.skip("SciPy carries no BLAS")
    clean = {k: v for k, v in os.environ.items() if k not in (_blas.BLAS_VARIABLE, _blas.CORE_VARIABLE)}
    use = f'tenferro_cpu.use_blas("{name}")' if by == "function" else ""
    environment = clean | ({_blas.BLAS_VARIABLE: name} if by == "variable" else {})
    code = CHOSEN.format(name=name, other=other, use=use)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="there is no gcc to make one with")
def test_blis_is_known_by_its_functions(tmp_path: Path) -> None:
    text = (
        "static long threads = 3; long bli_info_get_blas_int_type_size(void) { return 32; }"
        "long bli_thread_get_num_threads(void) { return threads; }"
        "void bli_thread_set_num_threads(long n) { threads = n; } void dgemm_(void) {}"
    )
    path = tmp_path / "libblis.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)], input=text, text=True, check=True)
    library = _blas._open(str(path))
    assert library is not None and (library.name, library.integers, list(library.gemm)) == ("blis", 4, ["d"])
    library.set_threads(2)
    assert library.get_threads() == 2
