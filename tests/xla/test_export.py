"""Exported programs: read and run by other processes that have no tenferro, and by other tools."""

import os
import subprocess
import sys

import jax
import jax.export
import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_ad import grad, value_and_grad
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, UnsupportedError
from tenferro_xla import export, import_stablehlo

A = np.array([[2.0, 1.0, 0.5], [0.0, 4.0, -1.0]])


def walk(pair):
    def step(carry, row):
        carry = tr.tanh(carry + row) * pair["w"]
        return carry, tr.sort(carry)[::-1]

    last, rows = tr.scan(step, tr.zeros(3), pair["x"])
    return tr.sum(tr.erf(last)) + tr.sum(rows @ tr.asarray([1.0, 2.0, 3.0]))


EXAMPLE = {"x": A, "w": np.array([0.5, -1.0, 2.0])}

INTERPRETED = """
import sys
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

context = ir.Context()
stablehlo.register_dialect(context)
with context:
    module = stablehlo.deserialize_portable_artifact(context, open(sys.argv[1], "rb").read())
    arguments = [ir.DenseElementsAttr.get(np.load(path)) for path in sys.argv[3:]]
    np.savez(sys.argv[2], *[np.array(x) for x in stablehlo.eval_module(module, arguments)])
assert not any(name.startswith(("tenferro", "jax.")) for name in sys.modules)
"""


def test_the_artifact_runs_where_only_the_reference_interpreter_is(tmp_path):
    exported = export(value_and_grad(walk), EXAMPLE, version="1.0.0")
    (tmp_path / "program.mlirbc").write_bytes(exported.bytes)
    for i, x in enumerate(EXAMPLE.values()):
        np.save(tmp_path / f"{i}.npy", x)
    files = [tmp_path / name for name in ("program.mlirbc", "results.npz", "0.npy", "1.npy")]
    subprocess.run([sys.executable, "-c", INTERPRETED, *map(str, files)], check=True)
    value, slopes = value_and_grad(walk)({k: tr.asarray(v) for k, v in EXAMPLE.items()})
    with np.load(tmp_path / "results.npz") as got:
        for name, want in zip(got.files, [value, slopes["x"], slopes["w"]], strict=True):
            np.testing.assert_allclose(got[name], np.asarray(want), rtol=1e-12)


EXPORTED_AGAIN = """
import hashlib
import numpy as np
import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_xla import export

a = np.array([[2.0, 1.0, 0.5], [0.0, 4.0, -1.0]])
exported = export(lambda x: {"s": tl.solve(x @ x.T, x), "g": tr.lgamma(x)}, a)
print(hashlib.sha256(exported.bytes).hexdigest())
"""


def test_the_bytes_are_the_same_in_every_process(capsys):
    exec(EXPORTED_AGAIN, {})
    here = capsys.readouterr().out
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    there = subprocess.run(
        [sys.executable, "-c", EXPORTED_AGAIN], check=True, capture_output=True, text=True, env=environment
    ).stdout
    assert len(here.strip()) == 64
    assert here == there


CALLED = """
import sys
import jax.export
import numpy as np

function = jax.export.deserialize(open(sys.argv[1], "rb").read())
with jax.enable_x64(True):
    result, failed = function.call({"a": np.diag([2.0, 4.0])}, scale=np.float64(3.0))
    np.testing.assert_allclose(result["inverse"], np.diag([1.5, 0.75]))
    assert not failed
    assert function.call({"a": np.zeros((2, 2))}, scale=np.float64(3.0))[1]
assert not any(name.startswith("tenferro") for name in sys.modules)
"""


def scaled_inverse(matrices, *, scale):
    return {"inverse": tl.inv(matrices["a"]) * scale}


def test_functions_for_jax(tmp_path):
    exported = export(tr.compile(scaled_inverse), {"a": np.eye(2)}, scale=1.0)
    assert exported.checked
    with jax.enable_x64(True):
        result, failed = exported.exported.call({"a": np.diag([2.0, 4.0])}, scale=np.float64(3.0))
        slope = export(grad(walk), EXAMPLE).exported.call(EXAMPLE)
    np.testing.assert_allclose(result["inverse"], np.diag([1.5, 0.75]))
    assert not failed
    want = grad(walk)({k: tr.asarray(v) for k, v in EXAMPLE.items()})
    for name, w in want.items():
        np.testing.assert_allclose(slope[name], np.asarray(w), rtol=1e-12)
    path = exported.save(tmp_path / "inverse.jax")
    assert [p.name for p in tmp_path.iterdir()] == ["inverse.jax"]
    subprocess.run([sys.executable, "-c", CALLED, str(path)], check=True)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    monkeypatch.delitem(sys.modules, "jax._src.export.serialization", raising=False)
    monkeypatch.delitem(sys.modules, "jax._src.export.serialization_generated", raising=False)
    with pytest.raises(
        BackendUnavailableError, match=r"flatbuffers, which is not installed; pip install 'tenferro-xla"
    ):
        export(tr.sin, A).serialize()


def test_platforms_with_libraries_of_their_own():
    both = export(tl.inv, np.eye(2), platforms=("cpu", "cuda"))
    assert both.exported.platforms == ("cpu", "cuda")
    with pytest.raises(UnsupportedError, match="calls platform libraries, so one artifact cannot serve all"):
        print(both.bytes)
    shared = export(tr.sin, A, platforms=("cpu", "cuda"))
    assert shared.bytes == export(tr.sin, A).bytes


def test_artifacts_are_imported_again():
    exported = export(lambda x: (tr.cumulative_sum(x, axis=1), tr.argmax(x, axis=0)), A)
    for source in (exported.bytes, exported.exported):
        sums, best = import_stablehlo(source)(A)
        np.testing.assert_array_equal(np.asarray(sums), np.cumsum(A, axis=1))
        np.testing.assert_array_equal(np.asarray(best), np.argmax(A, axis=0))


def test_mistakes_are_named():
    program = tr.trace(tr.sin, A)
    with pytest.raises(ArgumentError, match=r"writes versions \S+ to \S+, got version='7.0.0'; pass one"):
        export(program, version="7.0.0")
    with pytest.raises(ArgumentError, match="got version='new'"):
        export(program, version="new")
    with pytest.raises(ArgumentError, match=r"export takes platforms among cpu, cuda, rocm, tpu, got \('abacus',\)"):
        export(program, platforms="abacus")
    with pytest.raises(ArgumentError, match="export of a program takes no arguments"):
        export(program, A)
    with pytest.raises(UnsupportedError, match=r"export needs fixed sizes, but the program takes \(float64\[n\]\)"):
        export(tr.trace(tr.sin, tr.Spec((tr.dim("n"),), tr.float64)))
