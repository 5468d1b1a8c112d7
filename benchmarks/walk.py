"""What a reader walks through: files and functions of the library that run for one line of the user.

``tr.sum(x * y)``, its gradient and its compiled form: the first call of a dtype after the same of another one, and a
warm call. Names the files, with ``--functions`` the functions too, and with ``--counts`` prints only how many of both
there are, as JSON for ``python3 dev budget``, which holds ceilings.

    python benchmarks/walk.py
"""

from __future__ import annotations

import gc
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.running.fusion import wait


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


FORMS = {"eager call": total, "gradient": grad(total), "compiled call": tr.compile(total)}


def warm(x: Any) -> None:
    """Call each form until nothing is left to be made, neither here nor in the background."""
    for _ in range(2):
        for f in FORMS.values():
            for _ in range(3):
                f(x, x)
        wait()


def walks() -> dict[str, set[CodeType]]:
    """The code of each walk. The same in every fresh process: no background job runs, and no garbage is collected."""
    first, second = (tr.asarray(np.arange(1.0, 11.0).astype(name)) for name in ("float64", "float32"))
    gc.disable()
    warm(first)
    found = {f"first {name}": walked(f, second, second) for name, f in FORMS.items()}
    warm(second)
    return found | {f"warm {name}": walked(f, second, second) for name, f in FORMS.items()}


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
    found = walks()
    if "--counts" in sys.argv[1:]:
        print(
            json.dumps({what: (len({code.co_filename for code in codes}), len(codes)) for what, codes in found.items()})
        )
        return
    for what, codes in found.items():
        report(what, codes, "--functions" in sys.argv[1:])


if __name__ == "__main__":
    main()
