"""What an editor sees: types of users' expressions, typos, and public functions that return `Any`."""

import ast
import os
import runpy
import shutil
import subprocess
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, unwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import public_api
import tenferro_ad as ad
import tenferro_runtime as tr
import tenferro_tensor.functions as functions_module
from tenferro_runtime import _namespace

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMES = ["user_code", "unannotated"]


def checked(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mypy_infers_the_types() -> None:
    checked(sys.executable, "-m", "mypy", *[str(HERE / f"{name}.py") for name in NAMES])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed; `python3 dev types` runs it")
@pytest.mark.parametrize("name", NAMES)
def test_pyright_infers_the_types(name: str) -> None:
    checked("pyright", "--pythonpath", sys.executable, str(HERE / f"{name}.py"))


@pytest.mark.parametrize("name", NAMES)
def test_the_expressions_run(name: str) -> None:
    found = runpy.run_path(str(HERE / f"{name}.py"))
    for part in ("arrays", "families", "derivatives", "compiled", "expressions"):
        found.get(part, lambda: None)()


def test_there_are_expressions_and_typos() -> None:
    text = (HERE / "user_code.py").read_text()
    assert text.count("    assert_type(") >= 60 and text.split("def typos()")[1].count("# type: ignore\n") >= 10


def modules() -> list[ModuleType]:
    return [module for name in public_api.packages() for module in public_api.public_modules(name)]


def test_dir_lists_public_names_and_nothing_else() -> None:
    """The namespace also lists what its door finds: families, and functions of other distributions."""
    door = {"__version__", "bfloat16", *_namespace.FAMILIES, *_namespace.FORWARDED}
    for module in modules():
        hidden = {*functions_module.DEFERRED} if module is functions_module else set[str]()
        found = {*dir(module)} - (door if module is tr else hidden)
        assert found == {*module.__all__}, module.__name__
        assert all(hasattr(module, name) for name in dir(module)), module.__name__
    assert door <= {*dir(tr)}


def test_type_checkers_know_the_names_behind_the_door() -> None:
    assert {name for name, home in _namespace.FORWARDED.items() if home == "ad"} == {*ad.__all__}
    text = Path(tr.__file__).with_name("_elsewhere.py").read_text()
    listed = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assign))
    assert ast.literal_eval(listed.value) == sorted({*_namespace.FAMILIES, *_namespace.FORWARDED})
    assert not hasattr(import_module("tenferro_runtime._elsewhere"), "grad")


@pytest.mark.parametrize(("package", "others"), [("ad", set()), ("linalg", {"vander"}), ("runtime", set())])
def test_imports_for_type_checkers_are_the_deferred_ones(package: str, others: set[str]) -> None:
    """Type checkers read statements, and Python a table; both name the same objects of the same modules."""
    name = f"tenferro_{package}"
    tree = ast.parse(Path(import_module(name).__file__ or "").read_text())
    stated = {
        alias.name: (node.module or "").removeprefix(f"{name}.")
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{name}.")
        for alias in node.names
        if alias.name != "*"
    }
    tables = [
        ast.literal_eval(node) for node in ast.walk(tree) if isinstance(node, ast.Dict) and "*" not in ast.unparse(node)
    ]
    homes = [{part: module for module, line in table.items() for part in line.split()} for table in tables if table]
    assert {**stated, **dict.fromkeys(others)}.keys() in [home.keys() for home in homes]
    assert any(stated.items() <= home.items() for home in homes)


CONTAINERS = "values in the containers of the argument, which no annotation describes"
OUTPUTS = "one value, or a tuple of values, as the op says"
RAW = "an array or a block of memory of the backend's own library"
SCIPY = "an array of SciPy, which is optional"
NUMBER = "an integer, or a value for a symbolic extent"
LOWER = "an object of a class that is defined above this module"

ANY = {
    CONTAINERS: """
        tenferro_runtime.SavedFunction.__call__ tenferro_runtime.tree_transpose tenferro_runtime.tree_unflatten
        tenferro_runtime.batching.shifted tenferro_runtime.compiling.Compiled.__call__
        tenferro_runtime.extension.unflatten tenferro_runtime.exporting.files.encode_tree tenferro_runtime.ir.filled
        tenferro_xla.ImportedFunction.__call__ tenferro_xla.checkpoints.load_sharded
        tenferro_xla.mesh.MeshFunction.__call__
    """,
    OUTPUTS: """
        tenferro_runtime.Tensor.evaluate tenferro_runtime.batching.lane_by_lane
        tenferro_runtime.tracing.effects.apply_here
        tenferro_runtime.extension.Builder.bind tenferro_runtime.extension.Builder.bind_alike
        tenferro_runtime.extension.Builder.emit tenferro_runtime.extension.Op.evaluate
        tenferro_runtime.extension.Op.generic tenferro_runtime.extension.Primitive.__call__
        tenferro_tensor.tables.EntryTable.evaluate tenferro_tensor.tables.EntryTable.generic
    """,
    RAW: """
        tenferro_gpu.PoolAllocator.allocate tenferro_gpu.devices.CupyDevice.empty
        tenferro_gpu.devices.CupyDevice.upload tenferro_gpu.devices.CupyRuntime.copy_peer
        tenferro_gpu.whole.KernelSequence.__call__ tenferro_gpu.whole.KernelTarget.empty
        tenferro_gpu.whole.KernelTarget.lying tenferro_gpu.whole.KernelTarget.uploaded
        tenferro_gpu.whole.KernelTarget.viewed tenferro_runtime.Tensor.data
        tenferro_tensor.AcceleratorBackend.upload tenferro_tensor.Backend.imported tenferro_tensor.Backend.upload
        tenferro_tensor.DeviceRuntime.copy_peer tenferro_tensor.HostKernel.__call__
        tenferro_tensor.RuntimeDevice.empty tenferro_tensor.RuntimeDevice.upload
        tenferro_tensor.device_model.Allocator.allocate tenferro_tensor.device_model.ContractionKernel.__call__
        tenferro_tensor.transfers.Booked.__call__ tenferro_xla.XlaBackend.upload
    """,
    SCIPY: """
        tenferro_ad.Sparsity.matrix tenferro_ad.sparse.SparseDerivative.__call__ tenferro_linalg.SparseArray.to_scipy
    """,
    NUMBER: """
        tenferro_tensor.operands.count tenferro_tensor.operands.extent tenferro_tensor.operands.known_integer
        tenferro_tensor.operands.number tenferro_tensor.operands.truth
    """,
    LOWER: """
        tenferro_runtime.extension.Builder.source_of tenferro_runtime.extension.Primitive.adopt
        tenferro_runtime.tracing.recording tenferro_runtime.tracing.stage_above tenferro_tensor.dispatch.spec_of
        tenferro_tensor.families.member tenferro_tensor_core.as_size
    """,
    "a Program or a SavedFunction, and the caller knows which": "tenferro_runtime.load",
    "an array or a tuple of arrays, and the caller knows which": "tenferro_runtime.Program.__call__",
}
"""Public functions that return `Any`, by reason. A union would reject programs that are right."""


def functions() -> Iterator[tuple[str, FunctionType]]:
    """Public functions of public modules, and public methods of their classes, each once and by its first name."""
    seen: set[int] = set()
    for module in modules():
        for name in sorted(module.__all__):
            found = getattr(module, name)
            members: dict[str, Any] = {f"{module.__name__}.{name}": found}
            if isclass(found) and found.__module__.startswith("tenferro"):
                members = {
                    f"{module.__name__}.{name}.{key}": getattr(member, "fget", getattr(member, "__func__", member))
                    for key, member in sorted(vars(found).items())
                    if not key.startswith("_") or key == "__call__"
                }
            for full, member in members.items():
                f = unwrap(member) if callable(member) and not isclass(member) else member
                if isinstance(f, FunctionType) and id(f) not in seen:
                    seen.add(id(f))
                    yield full, f


def result(f: FunctionType) -> str:
    """The annotated result of a function, or of its first overload."""
    overloads = typing.get_overloads(f)
    found = (overloads[0] if overloads else f).__annotations__.get("return", "Any")
    return found if isinstance(found, str) else getattr(found, "__name__", str(found))


def test_functions_that_return_any_are_listed_with_reasons() -> None:
    every = dict(functions())
    found = {name for name, f in every.items() if result(f) in ("Any", "typing.Any")}
    listed = {name for names in ANY.values() for name in names.split()}
    assert found == listed
    assert len(every) > 1900 and len(found) <= 60
