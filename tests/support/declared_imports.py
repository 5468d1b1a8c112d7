"""An import contract: a distribution imports what it declares, also by string and in C, which import-linter cannot see.

What a distribution requires may be imported anywhere; an extra, or a requirement of some platforms only, where it is
needed: in a function, or for type checkers.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

CUPY = {"cupy", "cupyx", "cupy_backends"}
PROVIDED = {"jax": {"jax", "jaxlib"}, "cupy-cuda12x": CUPY, "cupy-cuda13x": CUPY, "cupy-rocm-7-0": CUPY}
"""What a requirement lets a package import, where that is not its own name."""

EVERYWHERE = {"numpy", *sys.stdlib_module_names}

BACKENDS = {"tenferro_cpu", "tenferro_gpu"}
"""Required, so that one install works, and reached by entry points alone."""

IF_INSTALLED = {
    "tenferro_ad": {"scipy"},  # the form of sparse derivatives
    "tenferro_einsum": {"kahypar"},  # a partitioner that cotengra may use
    "tenferro_runtime": {"IPython", "rich", "tqdm"},  # displays
    "tenferro_tensor": {"platformdirs", "scipy"},  # the folder of caches; special functions, addresses of LAPACK
}
"""Libraries that a distribution neither requires nor offers as an extra: it does without, or says what to install."""

BESIDE_ADAPTED = {
    "tenferro_ad.adapters.jax": {"tenferro_xla"},  # values of JAX are its tensors
    "tenferro_runtime.adapters.optax": {"jax"},  # what optax stands on
}
"""Further names of an adapter, which is imported after the library that it adapts and is named after it."""

COMPUTED = {
    "tenferro_cpu.native.threads._blas": "files of BLAS in installed wheels, which are not imported",
    "tenferro_runtime.extension._new_extension": "the module of a new package, which must not exist",
    "tenferro_runtime._namespace": "families, by their entry points",
    "tenferro_runtime.adapters._registration": "adapters, by the library that was imported",
    "tenferro_runtime.exporting.files._vocabulary": "distributions of this workspace, by the family in a file",
    "tenferro_cpu._backend": "`Backend.library`",
    "tenferro_tensor._libraries": "`library`",
    "tenferro_tensor._numpy_adapters": "einsum, by its entry point",
    "tenferro_tensor._primitive": "the module of a pickled primitive",
    "tenferro_tensor.entry_points": "modules of entry points",
    "tenferro_tensor.loop_interpreter._fortran": "two modules of SciPy",
    "tenferro_tensor_core.absent": "the module that was asked for a name",
    "tenferro_tensor_core.deferred": "modules of the package that defers",
}
"""Modules that import by a name which they compute, and the names."""

FOR_TYPE_CHECKERS = {"tenferro_runtime._elsewhere"}
"""Modules without code."""

LOADERS = {"__import__", "find_loader", "find_spec", "import_module", "load_module", "resolve_name", "run_module"}
LIBRARIES = {
    "tenferro_tensor.library", "tenferro_tensor._libraries.library", "tenferro_runtime.extension.library",
}  # fmt: skip
IN_C = re.compile(r'PyImport_Import\w*\(\s*("(?P<name>[\w.]+)")?')


class Imported(NamedTuple):
    """A name that a file imports, None if it is computed; late in functions and for type checkers."""

    line: int
    name: str | None
    late: bool


def imports(text: str) -> Iterator[Imported]:
    """The absolute imports of a file in Python, by statement and by string."""
    nodes = [*_nodes(ast.parse(text), any(loader in text for loader in (*LOADERS, "library")))]
    origins = _origins([node for node, _ in nodes])
    for node, late in nodes:
        if isinstance(node, ast.Import):
            yield from (Imported(node.lineno, alias.name, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield Imported(node.lineno, node.module, late)
        elif isinstance(node, ast.Call) and _loads(_dotted(node.func, origins)):
            operands = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("name", "mod_name"))]
            yield from (Imported(node.lineno, name, late) for operand in operands for name in _texts(operand))


def _nodes(tree: ast.Module, expressions: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The statements of a file, or all its nodes, and whether each runs after the import of its module or never."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, late = pending.pop()
        yield node, late
        waits = {*map(id, _waiting(node))}
        for child in ast.iter_child_nodes(node):
            if expressions or isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                pending.append((child, late or id(child) in waits))


def _waiting(node: ast.AST) -> list[ast.AST]:
    """What is below a node, and runs after the import of its module or never."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [*node.body]
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, ast.If) and _dotted(node.test, {}).endswith("TYPE_CHECKING"):
        return [*node.body]
    return []


def _origins(nodes: list[ast.AST]) -> dict[str, str]:
    """What the names of a file mean that it imports, or assigns to other names."""
    origins: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            origins |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for node in nodes:
        if isinstance(node, ast.Assign) and _loads(found := _dotted(node.value, origins)):
            origins |= {target.id: found for target in node.targets if isinstance(target, ast.Name)}
    return origins


def _dotted(function: ast.expr, origins: dict[str, str]) -> str:
    """The full name of a function; only its last part if what it belongs to is computed."""
    if isinstance(function, ast.Attribute):
        return f"{_dotted(function.value, origins)}.{function.attr}"
    return origins.get(function.id, function.id) if isinstance(function, ast.Name) else ""


def _loads(function: str) -> bool:
    return function.rpartition(".")[2] in LOADERS or function in LIBRARIES


def _texts(operand: ast.expr) -> list[str | None]:
    """The names that an operand of a loader may be, up to the first part of a name that is computed."""
    if isinstance(operand, ast.IfExp):
        return _texts(operand.body) + _texts(operand.orelse)
    if isinstance(operand, ast.BinOp):
        left, right = _texts(operand.left)[0], _texts(operand.right)[0]
        return [left if left and "." in left else left and right and left + right]
    if isinstance(operand, ast.JoinedStr):
        operand = operand.values[0]
        first = operand.value if isinstance(operand, ast.Constant) else ""
        return [str(first).rpartition(".")[0] or None]
    return [str(operand.value).replace(":", ".") if isinstance(operand, ast.Constant) else None]


def complaints(importer: str, text: str, language: str = ".py") -> list[str]:
    """What a module of a distribution may not import.

    Args:
        importer: full name of the module.
        text: text of its file.
        language: suffix of the file.
    """
    if importer in FOR_TYPE_CHECKERS:
        return []
    if language == ".py":
        found = list(imports(text))
    else:
        lines = enumerate(text.splitlines(), 1)
        found = [Imported(number, match["name"], True) for number, line in lines for match in IN_C.finditer(line)]
    reasons = [(line, name, _objection(importer, name, late)) for line, name, late in found]
    return [
        f"{importer}:{line} imports {name or 'a computed name'}, {reason}" for line, name, reason in reasons if reason
    ]


def _objection(importer: str, name: str | None, late: bool) -> str | None:
    """Why a module may not import a name."""
    if name is None:
        return None if importer in COMPUTED else "which no list explains"
    own, top = importer.partition(".")[0], name.partition(".")[0]
    if own == top or top in EVERYWHERE or top in _adapted(importer):
        return None
    anywhere, in_functions = declared(own)
    if top in anywhere:
        private = top.startswith("tenferro_") and re.search(r"\._(?!_)", name)
        return "a private module of another distribution" if private else None
    if top in in_functions | IF_INSTALLED.get(own, set()):
        return None if late else "which may be absent: import it in the function that needs it"
    return "which its distribution does not declare"


def _adapted(importer: str) -> set[str]:
    _, *parts = importer.split(".")
    return {parts[1], *BESIDE_ADAPTED.get(importer, ())} if parts[:1] == ["adapters"] and parts[1:] else set()


@cache
def declared(package: str) -> tuple[set[str], set[str]]:
    """What a package may import anywhere, and what only in functions."""
    path = ROOT / "packages" / package.removeprefix("tenferro_").replace("_", "-") / "pyproject.toml"
    project = tomllib.loads(path.read_text())["project"]
    required = [Requirement(text) for text in project["dependencies"]]
    extras = [Requirement(text) for texts in project.get("optional-dependencies", {}).values() for text in texts]
    anywhere: set[str] = set()
    for requirement in required:
        for name in _names(requirement) - BACKENDS:
            anywhere |= {name} if not name.startswith("tenferro_") else {name, *_siblings(name)}
    partly = [requirement for requirement in required if requirement.marker]
    some = {name for requirement in extras + partly for name in _names(requirement) if "tenferro" not in name}
    return anywhere - some, some


def _siblings(package: str) -> set[str]:
    return {name for name in declared(package)[0] if name.startswith("tenferro_")}


def _names(requirement: Requirement) -> set[str]:
    return PROVIDED.get(requirement.name, {requirement.name.replace("-", "_")})


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """The modules and C files of a package, by full name.

    Args:
        package: its folder.
    """
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".c", ".h"):
            parts = path.relative_to(package.parent).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), path


def checked(package: Path) -> list[str]:
    """The complaints about all files of a package.

    Args:
        package: its folder.
    """
    return [text for name, path in modules(package) for text in complaints(name, path.read_text(), path.suffix)]


class DeclaredImports(Contract):  # type: ignore[misc, unused-ignore]
    """Every package imports only what its distribution declares."""

    type_name = "declared_imports"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """As import-linter says."""
        specs = [find_spec(name) for name in self.session_options["root_packages"]]
        found = [text for spec in specs if spec and spec.origin for text in checked(Path(spec.origin).parent)]
        return ContractCheck(kept=not found, metadata={"complaints": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """As import-linter says."""
        for text in check.metadata["complaints"]:
            output.print_error(text, bold=False)
