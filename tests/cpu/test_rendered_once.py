"""Objects that are known by what they compute are loaded without their text."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenferro_cpu.native import available
from tenferro_cpu.native.kernels import _code
from tenferro_cpu.native.kernels._forms import Access
from tenferro_tensor import catalog
from tenferro_tensor.device_model import ObjectCache

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

TEXT = "define i64 @seven() { ret i64 7 }"


def rendering(texts: list[str]) -> Callable[[], str]:
    def render() -> str:
        texts.append(TEXT)
        return TEXT

    return render


def test_a_text_is_rendered_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenferro_cpu.native.codegen.machine import _jit

    texts: list[str] = []
    cache = ObjectCache(tmp_path / "objects")
    first, second = _jit.Engine(cache), _jit.Engine(cache)
    assert not first.at_hand("a seven", "seven")
    address = first.rendered("a seven", "seven", rendering(texts))
    assert first.rendered("a seven", "seven", rendering(texts)) == address and len(texts) == 1
    assert second.at_hand("a seven", "seven") and not second.at_hand("an eight", "seven")
    assert second.rendered("a seven", "seven", rendering(texts)) and len(texts) == 1
    assert second.stats()["from_disk"] == 1 and second.stats()["compiled"] == 0
    for path in (tmp_path / "objects").glob("*.obj"):  # the object is lost, or damaged
        if path.stat().st_size > 500:
            path.write_bytes(b"damaged")
    assert _jit.Engine(cache).rendered("a seven", "seven", rendering(texts)) and len(texts) == 2
    monkeypatch.setattr(_jit, "renderer", lambda: "another version")
    third = _jit.Engine(cache)
    assert not third.at_hand("a seven", "seven")
    assert third.rendered("a seven", "seven", rendering(texts)) and len(texts) == 3
    monkeypatch.setattr(_jit, "renderer", lambda: None)
    fourth = _jit.Engine(cache)
    assert fourth.rendered("a seven", "seven", rendering(texts)) and len(texts) == 4
    assert _jit.Engine(None).rendered("a seven", "seven", rendering(texts)) and len(texts) == 5


def test_notes_are_made_once(tmp_path: Path) -> None:
    from tenferro_cpu.native.codegen.machine import _jit

    made: list[int] = []
    cache = ObjectCache(tmp_path / "objects")
    for _ in range(2):
        assert _jit.Engine(cache).noted("cost", lambda: made.append(1) or "1.5") == "1.5"
    assert len(made) == 1


class Recording:
    """Stands in for an engine: what it is asked for is the key."""

    def __init__(self) -> None:
        from tenferro_cpu.native import engine

        self.host, self.asked = engine().host, list[tuple[str, str]]()

    def rendered(self, what: str, name: str, render: Callable[[], str], level: int = 0) -> int:
        self.asked.append((name, what))
        return len(self.asked)


def test_kernels_that_differ_have_another_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_code, "fixed_row", lambda *_: 0)
    monkeypatch.setattr(_code, "fixed_reduction", lambda *_: None)
    engine: Any = Recording()
    f8, f4, i4 = (np.dtype(name) for name in ("float64", "float32", "int32"))
    add, unit, fixed = catalog.add.op(), Access.UNIT, Access.FIXED
    units = (unit, unit, unit)
    for stream in (False, True):
        _code.mapped(engine, add, (f8, f8), f8, units, stream=stream)
    _code.mapped(engine, catalog.sub.op(), (f8, f8), f8, units)
    _code.mapped(engine, add, (f4, f4), f4, units)
    _code.mapped(engine, add, (f8, f8), f8, (unit, fixed, unit))
    _code.mapped(engine, add, (f8, f8), f8, (fixed, unit, unit))
    for target in (f4, i4):
        _code.mapped(engine, catalog.convert.op(dtype=target), (f8,), target, (unit, unit))
    for kind in ("sum", "max"):
        for dtype in (f8, f4):
            for access in (unit, Access.STRIDED):
                _code.reduced(engine, kind, dtype, access)
                _code.combined(engine, kind, dtype, access, unit)
                _code.combined(engine, kind, dtype, unit, Access.STRIDED)
            for length in (3, 4):
                _code.short(engine, kind, dtype, length, unit)
                _code.short(engine, kind, dtype, length, fixed)
    combined_twice = 4
    assert len({*engine.asked}) == len(engine.asked) - combined_twice


CALLED = """
import numpy as np, tenferro_runtime as tr
from tenferro_runtime.running import fusion
f = tr.compile(lambda x: tr.exp(x) * x + 1.0)
x = tr.asarray(np.ones(8))
for _ in range(3):
    f(x)
    fusion.wait()
print(bool(f.entries))
"""


def test_a_process_that_finds_its_kernels_on_disk_enters_them_in_machine_code(tmp_path):
    """No eager operation comes before, and the first call runs the kernel already."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", CALLED],
            env=os.environ | {"TENFERRO_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.stdout == "True\n", done.stderr
