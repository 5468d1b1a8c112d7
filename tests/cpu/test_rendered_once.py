"""Objects that are known by what they compute are loaded without their text."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tenferro_cpu.native import available
from tenferro_cpu.native.kernels._identity import identity
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Access, Apply, KernelIR, Literal, ObjectCache, Operand, Reduction

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

TEXT = "define i64 @seven() { ret i64 7 }"


def rendering(texts: list[str]) -> Callable[[], str]:
    def render() -> str:
        texts.append(TEXT)
        return TEXT

    return render


def test_a_text_is_rendered_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenferro_cpu.native.machine import _jit

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
    from tenferro_cpu.native.machine import _jit

    made: list[int] = []
    cache = ObjectCache(tmp_path / "objects")
    for _ in range(2):
        assert _jit.Engine(cache).noted("cost", lambda: made.append(1) or "1.5") == "1.5"
    assert len(made) == 1


def test_kernels_that_differ_have_another_identity() -> None:
    f8, f4 = Operand(np.dtype("float64")), Operand(np.dtype("float32"))
    one = Literal(1.0, f8.dtype)
    add = lambda lines, **more: KernelIR((f8, f8), lines, (2,), **more)
    kernels = [
        add((Apply(catalog.add.op(), (0, 1)),)),
        add((Apply(catalog.sub.op(), (0, 1)),)),
        add((Apply(catalog.sub.op(), (1, 0)),)),
        add((Apply(catalog.add.op(), (0, 1)),), reduction=Reduction("sum")),
        add((Apply(catalog.add.op(), (0, 1)),), reduction=Reduction("max")),
        KernelIR((f4, f4), (Apply(catalog.add.op(), (0, 1)),), (2,)),
        KernelIR((f8, Operand(f8.dtype, Access.FIXED)), (Apply(catalog.add.op(), (0, 1)),), (2,)),
        KernelIR((f8,), (one, Apply(catalog.add.op(), (0, 1))), (2,)),
        KernelIR((f8,), (Literal(-0.0, f8.dtype), Apply(catalog.add.op(), (0, 1))), (2,)),
        KernelIR((f8,), (Literal(0.0, f8.dtype), Apply(catalog.add.op(), (0, 1))), (2,)),
        KernelIR((f8,), (Apply(catalog.convert.op(dtype=f4.dtype), (0,)),), (1,)),
        KernelIR((f8,), (Apply(catalog.convert.op(dtype=np.dtype("int32")), (0,)),), (1,)),
    ]
    assert len({identity(k) for k in kernels}) == len(kernels)
    assert identity(kernels[0], True) != identity(kernels[0], False) and identity(kernels[0]) == identity(kernels[0])


CALLED = """
import numpy as np, tenferro_runtime as tr
from tenferro_runtime import fusion
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
