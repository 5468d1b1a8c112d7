"""The contract of declared imports finds each of many plants, by itself and in one process."""

import pytest

import declared_imports
from declared_imports import complaints, modules
from workspace import FOLDERS, source

UNDECLARED = "which its distribution does not declare"
ABSENT = "which may be absent: import it in the function that needs it"
PRIVATE = "a private module of another distribution"
COMPUTED = "which no list explains"

PLANTS = [
    # Upwards and sideways, at every place of an import.
    ("tensor_core", "import tenferro_tensor", UNDECLARED),
    ("tensor", "import tenferro_runtime", UNDECLARED),
    ("tensor", "from tenferro_ad import grad", UNDECLARED),
    ("cpu", "from tenferro_runtime.extension import Spec", UNDECLARED),
    ("gpu", "def f():\n    import tenferro_runtime", UNDECLARED),
    ("runtime", "import tenferro_linalg.providers", UNDECLARED),
    ("runtime", "if TYPE_CHECKING:\n    from tenferro_ad import grad", UNDECLARED),
    ("runtime", "try:\n    import tenferro_ad\nexcept ImportError:\n    pass", UNDECLARED),
    ("linalg", "class A:\n    def f(self):\n        import tenferro_einsum", UNDECLARED),
    ("fft", "import tenferro_linalg", UNDECLARED),
    ("xla", "import typing\nif typing.TYPE_CHECKING:\n    import tenferro_fft", UNDECLARED),
    ("ad", "import tenferro_einsum", UNDECLARED),
    ("ad", "def f():\n    import tenferro_xla", UNDECLARED),
    # Backends.
    ("runtime", "def f():\n    import tenferro_cpu", UNDECLARED),
    ("linalg", "from tenferro_gpu import upload", UNDECLARED),
    ("cpu", "import tenferro_gpu", UNDECLARED),
    # Private names.
    ("fft", "from tenferro_tensor._spec import Spec", PRIVATE),
    ("ad", "def f():\n    import tenferro_runtime.ir._program", PRIVATE),
    # Libraries of another distribution, and of none.
    ("runtime", "def f():\n    import jaxlib", UNDECLARED),
    ("linalg", "def f():\n    import cupyx.scipy.linalg", UNDECLARED),
    ("fft", "import llvmlite.ir", UNDECLARED),
    ("tensor_core", "import pandas", UNDECLARED),
    ("tensor", "def f():\n    import torch", UNDECLARED),
    ("einsum", "import networkx as nx", UNDECLARED),
    # Extras, and what some platforms lack, at import time.
    ("runtime", "import scipy.special", ABSENT),
    ("gpu", "try:\n    import cupy\nexcept ImportError:\n    cupy = None", ABSENT),
    ("cpu", "from llvmlite import binding", ABSENT),
    ("einsum", "class A:\n    import cotengra", ABSENT),
    ("tensor_core", "def f(): pass\nif TYPE_CHECKING:\n    pass\nelse:\n    import ml_dtypes", ABSENT),
    ("runtime", "def f(x=__import__('scipy')): pass", ABSENT),
    # By string.
    ("runtime", "import importlib\nimportlib.import_module('tenferro_ad')", UNDECLARED),
    ("runtime", "from importlib import import_module as load\ndef f():\n    load('tenferro_ad.sparse')", UNDECLARED),
    ("runtime", "import importlib as i\nload = i.import_module\nload(name='tenferro_ad')", UNDECLARED),
    ("tensor", "__import__('tenferro_' + 'runtime')", UNDECLARED),
    ("tensor", "import builtins\nbuiltins.__import__(name='torch')", UNDECLARED),
    ("linalg", "def f():\n    import importlib.util as u\n    u.find_spec('cupy').loader.load_module()", UNDECLARED),
    ("linalg", "from importlib.machinery import PathFinder\nPathFinder().find_spec('jax')", UNDECLARED),
    ("einsum", "import pkgutil\npkgutil.resolve_name('tenferro_linalg:svd')", UNDECLARED),
    ("einsum", "import runpy\nrunpy.run_module('networkx')", UNDECLARED),
    ("ad", "from tenferro_tensor import library\nf = lambda: library('jax.numpy')", UNDECLARED),
    ("xla", "def f(name):\n    __import__(f'torch.{name}')", UNDECLARED),
    ("xla", "def f(x):\n    __import__('jax' if x else 'torch')", UNDECLARED),
    ("fft", "from tenferro_runtime.extension import library\nlibrary('tenferro_tensor._spec')", PRIVATE),
    ("fft", "from importlib import import_module\ndef f(name):\n    import_module(name)", COMPUTED),
    ("fft", "def f(name):\n    __import__(f'tenferro_{name}')", COMPUTED),
]


@pytest.mark.parametrize(("package", "text", "reason"), PLANTS)
def test_a_planted_import_is_found(package: str, text: str, reason: str) -> None:
    (found,) = complaints(f"tenferro_{package}._planted", text)
    assert found.endswith(f", {reason}")


def test_a_planted_import_in_c_is_found() -> None:
    text = 'int f(void)\n{\n    PyImport_ImportModule("torch");\n    PyImport_Import(name);\n}'
    assert complaints("tenferro_cpu.native._planted", text, ".c") == [
        f"tenferro_cpu.native._planted:3 imports torch, {UNDECLARED}",
        f"tenferro_cpu.native._planted:4 imports a computed name, {COMPUTED}",
    ]


@pytest.mark.parametrize(
    ("package", "text"),
    [
        ("einsum", "import opt_einsum, tenferro_tensor_core.forks"),
        ("einsum", "if TYPE_CHECKING:\n    import cotengra"),
        ("gpu", "async def f():\n    from cupy.cuda import Stream"),
        ("cpu", "import importlib.util\nf = lambda: importlib.util.find_spec('llvmlite')"),
        ("linalg", "def f(library):\n    return library('lax'), backend.library('numpy')"),
        ("xla", "from jaxlib import xla_client\nfrom . import torch"),
        ("runtime", "def f(name):\n    __import__(f'tenferro_runtime.{name}')"),
    ],
)
def test_what_is_declared_may_be_imported(package: str, text: str) -> None:
    assert complaints(f"tenferro_{package}._planted", text) == []


def test_no_exception_of_the_contract_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each entry of a list prevents a complaint."""
    known = {name: path for folder in FOLDERS for name, path in modules(source(folder)) if path.suffix == ".py"}
    listed = [*declared_imports.COMPUTED, *declared_imports.BESIDE_ADAPTED, *declared_imports.FOR_TYPE_CHECKERS]
    optional = [(package, name) for package, names in declared_imports.IF_INSTALLED.items() for name in names]
    for name in ("COMPUTED", "IF_INSTALLED", "BESIDE_ADAPTED", "FOR_TYPE_CHECKERS"):
        monkeypatch.setattr(declared_imports, name, {})
    for importer in listed:
        assert complaints(importer, known[importer].read_text()), importer
    for package, name in optional:
        users = [(key, path.read_text()) for key, path in known.items() if key.startswith(f"{package}.")]
        found = [text for key, code in users if name in code for text in complaints(key, code)]
        assert any(f" imports {name}" in text for text in found), f"{package} does not use {name}"
