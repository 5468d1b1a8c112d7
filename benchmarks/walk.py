"""What a reader walks through: files and functions of the library that run for one line of the user.

``tr.sum(x * y)`` of a dtype that was not used before, after the same of another one, and its gradient. Names the files,
and with ``--functions`` the functions too.

    python benchmarks/walk.py
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import grad


def walked(f: Callable[..., Any], *args: Any) -> set[CodeType]:
    """The code of the library that runs in this thread while `f` does."""
    found: set[CodeType] = set()

    def seen(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and "/tenferro_" in code.co_filename:
            found.add(code)

    sys.setprofile(seen)
    try:
        f(*args)
    finally:
        sys.setprofile(None)
    return found


def total(x: Any, y: Any) -> Any:
    return tr.sum(x * y)


def report(what: str, codes: set[CodeType], functions: bool) -> None:
    files = Counter(code.co_filename for code in codes)
    print(f"{what}: {len(files)} files, {len(codes)} functions")
    for name, count in sorted(files.items()):
        path = Path(name)
        package = next(part for part in path.parts if part.startswith("tenferro_"))
        print(f"    {count:3d} {'/'.join(path.parts[path.parts.index(package) :])}")
        if functions:
            for code in sorted((c for c in codes if c.co_filename == name), key=lambda c: c.co_firstlineno):
                print(f"            {code.co_qualname}:{code.co_firstlineno}")


def main() -> None:
    first, second = (tr.asarray(np.arange(1.0, 11.0).astype(name)) for name in ("float64", "float32"))
    gradient = grad(total)
    for f in (total, gradient):
        for _ in range(3):
            f(first, first)
    functions = "--functions" in sys.argv[1:]
    report("tr.sum(x * y)", walked(total, second, second), functions)
    tr.asarray(np.arange(10, dtype="complex64"))
    third = tr.asarray(np.arange(1.0, 11.0).astype("complex64"))
    report("again", walked(total, second, second), functions)
    report("under grad", walked(gradient, second, second), functions)
    del third


if __name__ == "__main__":
    main()
