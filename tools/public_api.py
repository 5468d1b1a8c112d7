"""The public interface: names and signatures of every public module, kept as a snapshot in tests/assets/api.

`python3 dev api` writes the snapshot again. A change of it is a change for users: it needs a line in the changelog, and
a name that disappears must have been deprecated before (docs/support.md).
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = ROOT / "tests" / "assets" / "api"


def packages() -> list[str]:
    """Import names of the distributions."""
    return sorted(path.name for path in ROOT.glob("packages/*/src/tenferro_*"))


def public_modules(package: str) -> Iterator[Any]:
    """Modules that declare `__all__` and whose path has no private part; those for an absent guest are left out."""
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        if any(part.startswith("_") for part in found.name.split(".")) or ".adapters." in found.name:
            continue
        module = importlib.import_module(found.name)
        if hasattr(module, "__all__"):
            yield module


def signature(value: Any) -> str:
    """Parameters with their defaults. Annotations are left out: mypy holds them, and Pythons print them differently."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    plain = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Shown(p.default))
        for p in found.parameters.values()
    ]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


PLAIN = (int, float, complex, str, bytes, type(None))


class _Shown:
    """A default that prints without the address of an object."""

    def __init__(self, value: Any) -> None:
        parts = value if isinstance(value, tuple) else (value,)
        self.text = repr(value) if all(isinstance(part, PLAIN) for part in parts) else "..."

    def __repr__(self) -> str:
        return self.text


def lines(module: Any) -> Iterator[str]:
    """One line for each public name, and for each public method of a class that this package defines."""
    for name in sorted(module.__all__):
        value = inspect.getattr_static(module, name, None) or getattr(module, name)
        full = f"{module.__name__}.{name}"
        if inspect.isclass(value):
            twin = module.__name__ == "tenferro_tensor.calls"  # in C, or the same in Python: only one shows parameters
            plain = twin or issubclass(value, BaseException)
            yield f"class {full}{'' if plain else signature(value)}"
            if twin:
                continue
            for key, member in sorted(vars(value).items()):
                if not key.startswith("_"):
                    raw = getattr(member, "__func__", member)
                    yield f"    {key}{signature(raw) if callable(raw) else ''}"
        elif inspect.ismodule(value):
            yield f"module {full}"
        elif callable(value):
            yield f"{full}{signature(value)}"
        else:
            yield f"{full}: {type(value).__name__}"


def interface(package: str) -> str:
    """The interface of one distribution as text."""
    return "".join(f"{line}\n" for module in public_modules(package) for line in lines(module))


def main() -> int:
    SNAPSHOT.mkdir(parents=True, exist_ok=True)
    for package in packages():
        text = interface(package)
        (SNAPSHOT / f"{package}.txt").write_text(text)
        print(f"{text.count(chr(10)):6} lines  {package}", file=sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
