"""Writes the names and signatures of the CuPy that is installed beside it, as JSON; no GPU and no CUDA is needed.

Modules that load CUDA libraries when they are imported are read instead: Python files are parsed, and of compiled ones
the signatures that Cython puts in front of their documentation are searched for.

    python read_interface.py > interface.json
"""

import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

IMPORTED = (
    "cupy", "cupy.linalg", "cupy.fft", "cupy.lib", "cupy.lib.stride_tricks", "cupy.cuda", "cupy.cuda.runtime",
    "cupy.cuda.memory", "cupy.cuda.function", "cupyx", "cupyx.scipy", "cupyx.scipy.fft", "cupyx.scipy.special",
    "cupyx.scipy.sparse",
)  # fmt: skip
READ = {"cupyx.scipy.linalg": (), "cupyx.cutensor": ("_cutensor",), "cupy_backends.cuda.libs.cublas": ()}
"""Modules whose import needs CUDA, and the compiled ones beside them that define what they import."""

LATER = {"cupy.cuda": ("cublas",)}
"""Names that a module defines at their first use, which needs CUDA."""

CLASSES = {
    "cupy.ndarray": "cupy", "cupy.cuda.Device": "cupy.cuda", "cupy.cuda.Stream": "cupy.cuda",
    "cupy.cuda.Event": "cupy.cuda", "cupy.cuda.function.Module": "cupy.cuda.function",
    "cupy.cuda.MemoryPool": "cupy.cuda", "cupy.cuda.MemoryAsyncPool": "cupy.cuda",
}  # fmt: skip


def parameters(signature: inspect.Signature) -> str:
    """The names of parameters: ``a, axis=, *, out=``."""
    shown, open_names, closed = [], False, False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not closed:
            shown, closed = [*shown, "*"], True
        closed = closed or p.kind is p.VAR_POSITIONAL
        if open_names and p.kind is not p.POSITIONAL_ONLY:
            shown, open_names = [*shown, "/"], False
        open_names = open_names or p.kind is p.POSITIONAL_ONLY
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        shown.append(star + p.name + ("" if star or p.default is p.empty else "="))
    return ", ".join([*shown, "/"] if open_names else shown)


def embedded(text: str, name: str) -> str | None:
    """The parameters in a signature that Cython wrote: ``f(int a, _ndarray_base b=None, *, c)``."""
    found = re.match(rf"(?:\w+\.)?{re.escape(name)}\(", text)
    if found is None:
        return None
    depth, start, parts = 0, found.end(), []
    for i in range(start, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}" and depth:
            depth -= 1
        elif not depth and text[i] in ",)":
            parts.append(text[start:i].strip())
            start = i + 1
            if text[i] == ")":
                break
    shown = []
    for part in filter(None, parts):
        head, default, _ = part.partition("=")
        shown.append(part if part in "*/" else head.split(":")[0].split()[-1] + ("=" if default else ""))
    return ", ".join(shown[1:] if shown[:1] == ["self"] else shown)


def described(name: str, found: Any) -> str:
    """What a name stands for: ``f(a, b=)`` for functions, ``ufunc``, ``class``, ``module`` or ``value``."""
    if inspect.ismodule(found):
        return "module"
    if inspect.isclass(found):
        return "class"
    if type(found).__name__ == "ufunc":
        return "ufunc"
    if not callable(found):
        return "value"
    text = embedded((getattr(found, "__doc__", "") or "").lstrip(), name)
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return "f(*, ?)" if text is None else f"f({text})"
    return f"f({parameters(signature)})" if text is None or inspect.isfunction(found) else f"f({text})"


def public(owner: Any) -> list[str]:
    return sorted(n for n in dir(owner) if not n.startswith("_") and n != "annotations")


def members(owner: Any) -> dict[str, str]:
    found = {}
    for name in public(owner):
        try:
            value = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
        except Exception:  # what would load CUDA
            continue
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        text = described(name, value)
        drops = inspect.isclass(owner) and text.startswith("f(self") and not isinstance(value, staticmethod)
        found[name] = re.sub(r"^f\(self(, )?", "f(", text) if drops else text
    return found


def parsed(module: str, compiled: tuple[str, ...]) -> dict[str, str]:
    """The names that a module defines or imports from its own package, without importing it."""
    site = Path(importlib.import_module("cupy").__file__ or "").parents[1]
    base = site / module.replace(".", "/")
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    binary = "".join(
        path.read_bytes().decode("latin-1") for stem in compiled for path in file.parent.glob(f"{stem}.*.so")
    )
    if not file.exists():  # compiled, or left out: of its functions those whose documentation begins with their name
        binary = "".join(path.read_bytes().decode("latin-1") for path in base.parent.glob(f"{base.name}.*.so"))
        starts = [(m.group(1), m.start() + 1) for m in re.finditer(r"\0([a-z]\w+)\([a-zA-Z_, =.\[\]*]*\)", binary)]
        return {name: f"f({embedded(binary[at : at + 4000], name)})" for name, at in sorted(starts)}
    found = {}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("cupyx", "cupy"):
            source = site / (node.module.replace(".", "/") + ".py")
            defined = {}
            if source.exists():
                bodies = ast.parse(source.read_text()).body
                defined = {n.name: n for n in bodies if isinstance(n, ast.FunctionDef)}
            for alias in node.names:
                if alias.name in defined:
                    found[alias.name] = f"f({from_ast(defined[alias.name].args)})"
                elif (at := binary.find(f"\0{alias.name}(")) >= 0:
                    found[alias.name] = f"f({embedded(binary[at + 1 : at + 4000], alias.name)})"
                else:
                    found[alias.name] = "value"
    return {name: text for name, text in sorted(found.items()) if not name.startswith("_")}


def from_ast(a: ast.arguments) -> str:
    positional = [*a.posonlyargs, *a.args]
    first = len(positional) - len(a.defaults)
    shown = [p.arg + ("=" if i >= first else "") for i, p in enumerate(positional)]
    if a.vararg:
        shown.append(f"*{a.vararg.arg}")
    elif a.kwonlyargs:
        shown.append("*")
    shown += [p.arg + ("=" if d is not None else "") for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    return ", ".join([*shown, f"**{a.kwarg.arg}"] if a.kwarg else shown)


def interface() -> dict[str, Any]:
    found: dict[str, Any] = {"version": importlib.import_module("cupy").__version__}
    for name in IMPORTED:
        found[name] = members(importlib.import_module(name)) | dict.fromkeys(LATER.get(name, ()), "module")
    for name, compiled in READ.items():
        found[name] = parsed(name, compiled)
    for name, module in CLASSES.items():
        short = name.rpartition(".")[2]
        found[name] = members(owner := getattr(importlib.import_module(module), short))
        text = embedded((owner.__doc__ or "").lstrip(), short)
        found[name]["__init__"] = f"f({parameters(inspect.signature(owner)) if text is None else text})"
    return found


if __name__ == "__main__":
    json.dump(interface(), sys.stdout, indent=1, sort_keys=True)
    print()
