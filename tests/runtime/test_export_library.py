"""Programs as libraries: headers that C and C++ compile, functions that give the bits of compiled programs."""

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_fft as fft
import tenferro_linalg as la
import tenferro_runtime as tr
from tenferro_cpu.native import available
from tenferro_runtime.extension import NumericalError
from tenferro_runtime.reports import LibraryFiles
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, DTypeError, ShapeError, UnsupportedError

pytestmark = [
    pytest.mark.skipif(not available(), reason="no machine code of programs here"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]
SIZE = tr.dim("n", min=2)
ARGUMENTS = (tr.Spec((SIZE,), tr.float64), tr.Spec((), tr.float64))
U, RATE = np.sin(np.arange(23.0)), np.array(0.2)


def heat(u: Any, rate: Any) -> Any:
    """Twenty steps of the heat equation, and how the total of exponentials changes."""

    def step(u: Any, _: None) -> Any:
        return u.at[1:-1].set(u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])), tr.sum(tr.exp(u))

    return tr.scan(step, u, None, length=20)


def loss(u: Any, rate: Any) -> Any:
    return tr.sum(heat(u, rate)[0] ** 2)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> LibraryFiles:
    programs = {
        "heat": tr.trace(heat, *ARGUMENTS),
        "heat_gradient": tr.trace(ad.value_and_grad(loss, argnums=(0, 1)), *ARGUMENTS),
    }
    return tr.export_library(tmp_path_factory.mktemp("library") / "heat", programs)


def built(folder: Path, compiler: str, source: Path, *others: object) -> str:
    """Output of a program that was compiled from a source and linked with object files."""
    command = [compiler, str(source), "-I", str(folder), "-o", str(folder / source.stem), *map(str, others), "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return subprocess.run([folder / source.stem], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("n", [2, 3, 23])
def test_functions_give_the_bits_of_compiled_programs(files: LibraryFiles, n: int) -> None:
    assert files.library is not None
    library = tr.load_library(files.library, "heat", "heat_gradient")
    values = tr.asarray(U[:n]), tr.asarray(RATE)
    for got, want in zip(library["heat"](U[:n], RATE), tr.compile(heat)(*values), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    value, *gradients = library["heat_gradient"](U[:n], RATE)
    want_value, want_gradients = ad.value_and_grad(loss, argnums=(0, 1))(*values)
    for got, want in zip([value, *gradients], [want_value, *want_gradients], strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-13)


CALLER = """
#include "heat.h"
#include <math.h>
#include <stdio.h>
int main(void) {
    double u[23], rate = 0.2, result[23], totals[20];
    for (int i = 0; i < 23; i++) u[i] = sin((double)i);
    int code = heat(23, u, &rate, result, totals);
    printf("%d %a %a %s\\n", code, result[11], totals[19], heat_error(1));
    return code;
}
"""


@pytest.mark.parametrize(("compiler", "suffix"), [("cc", "c"), ("c++", "cpp")])
def test_c_and_cpp_programs_call_them(files: LibraryFiles, tmp_path: Path, compiler: str, suffix: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    shutil.copy(files.header, tmp_path)
    source = tmp_path / f"caller.{suffix}"
    source.write_text(CALLER)
    code, element, total, *text = built(tmp_path, compiler, source, files.object).split()
    result, totals = tr.compile(heat)(tr.asarray(U), tr.asarray(RATE))
    assert code == "0" and " ".join(text) == "heat: there is no memory for temporaries"
    assert float.fromhex(element) == float(result[11]) and float.fromhex(total) == float(totals[19])


FACTOR = """
#include "factor.h"
#include <math.h>
#include <stdio.h>
#include <stdint.h>
/* The upper factor of a matrix in columns, as LAPACK has it. */
void dpotrf_(const char *half, const int32_t *n, double *a, const int32_t *lda, int32_t *info) {
    for (int j = 0; j < *n; j++) {
        for (int i = 0; i <= j; i++) {
            double s = a[i + j * *lda];
            for (int k = 0; k < i; k++) s -= a[k + i * *lda] * a[k + j * *lda];
            if (i == j && s <= 0) { *info = j + 1; return; }
            a[i + j * *lda] = i == j ? sqrt(s) : s / a[i + i * *lda];
        }
    }
    *info = *half == 'U' ? 0 : -1;
}
int main(void) {
    double good[4] = {4, 2, 2, 5}, bad[4] = {1, 2, 2, 1}, l[4];
    int first = factor(good, l), second = factor(bad, l);
    printf("%d %g %g %g %g|%d %s", first, l[0], l[1], l[2], l[3], second, factor_error(second));
    return first;
}
"""


def test_lapack_is_called_by_name_and_its_reports_are_codes(tmp_path: Path) -> None:
    program = tr.trace(la.cholesky, tr.Spec((2, 2), tr.float64))
    files = program.export_library(tmp_path / "factor", shared=False)
    source = tmp_path / "caller.c"
    source.write_text(FACTOR)
    good, bad = built(tmp_path, "cc", source, files.object).split("|")
    code, text = bad.split(" ", 1)
    assert int(code) >= 2 and "cholesky" in text and "LAPACK did not succeed" in text
    assert good.startswith("0 ") and files.library is None


def test_object_code_for_other_processors(tmp_path: Path) -> None:
    program = tr.trace(lambda u, rate: tr.scan(lambda u, _: (u + rate * u, None), u, None, length=9)[0], *ARGUMENTS)
    machines = {"neon": 183, "generic": 62, "avx2": 62, "avx512": 62}  # EM_AARCH64, EM_X86_64
    for level, machine in machines.items():
        code = program.export_library(tmp_path / level, "heat", level=level, shared=False).object.read_bytes()
        assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == machine


def test_what_is_refused(files: LibraryFiles, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="not a name that a function of C can have"):
        tr.export_library(tmp_path / "x", {"not a name": tr.trace(heat, *ARGUMENTS)})
    with pytest.raises(ArgumentError, match="vector level 'sse'"):
        tr.trace(heat, *ARGUMENTS).export_library(tmp_path / "x", level="sse")
    with pytest.raises(UnsupportedError, match=r"test_export_library\.py:\d+.*runs a Python kernel"):
        tr.trace(lambda z: fft.fft(z), tr.Spec((7,), tr.complex128)).export_library(tmp_path / "x")
    assert files.library is not None
    run = tr.load_library(files.library, "heat")["heat"]
    with pytest.raises(ArgumentError, match="takes 2 arrays, got 1"):
        run(U)
    with pytest.raises(DTypeError, match="is float64, got float32"):
        run(U.astype(np.float32), RATE)
    with pytest.raises(ShapeError, match="has the shape"):
        run(U, np.zeros(3))
    with pytest.raises(BackendUnavailableError, match="has no function 'other'"):
        tr.load_library(files.library, "other")


def test_fourier_transforms_of_open_lengths(tmp_path: Path) -> None:
    program = tr.trace(lambda z: fft.ifft(2.0 * fft.fft(z)), tr.Spec((tr.dim("n", 1),), tr.complex128))
    files = program.export_library(tmp_path / "twice")
    assert files.library is not None
    run = tr.load_library(files.library, "twice")["twice"]
    for n in (8, 60, 1024):
        z = np.arange(n) + 0.5j
        np.testing.assert_allclose(np.asarray(run(z)), 2.0 * z, rtol=0, atol=1e-15 * 4 * n)
    with pytest.raises(NumericalError, match="c2c at .*only its kernel takes such an extent"):
        run(np.ones(7, np.complex128))


def test_a_report_is_an_error_of_python(tmp_path: Path) -> None:
    stub = tmp_path / "stub.c"
    stub.write_text("void dpotrf_(void *h, void *n, void *a, void *l, int *info) { *info = 1; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(tmp_path / "libstub.so"), str(stub)], check=True)
    program = tr.trace(la.cholesky, tr.Spec((2, 2), tr.float64))
    files = program.export_library(tmp_path / "factor", libraries=())
    assert files.library is not None
    subprocess.run(
        ["cc", "-shared", "-o", str(tmp_path / "libboth.so"), str(files.object), str(tmp_path / "libstub.so"),
         f"-Wl,-rpath,{tmp_path}"], check=True,
    )  # fmt: skip
    with pytest.raises(NumericalError, match="cholesky at .*: LAPACK did not succeed"):
        tr.load_library(tmp_path / "libboth.so", "factor")["factor"](np.eye(2))


REFUSED = """
#include "refusing.h"
#include <stdio.h>
#include <string.h>
int main(void) {
    double x[9], y[81];
    int64_t sizes[] = {-1, 0, 1, 2, 3, 4, 7, 8, INT64_MAX, INT64_MIN};
    for (int k = 0; k < 10; k++) {
        for (int i = 0; i < 9; i++) x[i] = i;
        memset(y, 0x55, sizeof y);
        int code = picked(sizes[k], x, y);
        int written = 0;
        for (size_t i = 0; i < sizeof y; i++) written |= ((char *)y)[i] != 0x55;
        printf("%d %d %s\\n", code, written, code ? picked_error(code) : "");
    }
    return 0;
}
"""


def refusing(folder: Path, **options: Any) -> LibraryFiles:
    """A program of sizes from 2 to 7 that reads the element 3."""
    size = tr.dim("n", min=2, max=7)
    program = tr.trace(lambda x: tr.fori_loop(0, 3, lambda i, x: x * 2.0, x) + x[3], tr.Spec((size,), tr.float64))
    return tr.export_library(folder / "refusing", {"picked": program}, **options)


def test_sizes_that_eager_calls_refuse_are_codes(tmp_path: Path) -> None:
    files = refusing(tmp_path)
    source = tmp_path / "caller.c"
    source.write_text(REFUSED)
    rows = built(tmp_path, "cc", source, files.object).splitlines()
    low, high = "2 0 picked: n must be at least 2", "3 0 picked: n must be at most 7"
    guard = "4 0 picked: the program was traced"
    for row, want in zip(rows, [low, low, low, guard, guard, "0 1 ", "0 1 ", high, high, low], strict=True):
        assert row.startswith(want), (row, want)
    assert "under the condition 3 < n" in rows[3]
    assert files.library is not None
    run = tr.load_library(files.library, "picked")["picked"]
    assert np.asarray(run(np.arange(4.0))).tolist() == [3.0, 11.0, 19.0, 27.0]
    for n, text in ((0, "at least 2"), (3, "the condition 3 < n .*; the sizes are {'n': 3}"), (8, "at most 7")):
        with pytest.raises(ShapeError, match=f"picked: .*{text}"):
            run(np.zeros(n))
    assert [line for line in files.header.read_text().splitlines() if line.startswith(" * 3: ")] == [
        " * 3: n must be at most 7"
    ]


def test_sizes_of_arrays_that_no_memory_holds_are_refused(tmp_path: Path) -> None:
    """Products that overflow 64 bits would be small sizes, and the program would write beyond its memory."""
    n, m = tr.dim("n"), tr.dim("m")

    def cubes(x: Any, y: Any) -> Any:
        z = x[:, None, None] * x[None, :, None] * y
        return tr.fori_loop(0, 2, lambda i, t: t + tr.sum(tr.sin(z * t)), tr.asarray(0.1))

    program = tr.trace(cubes, tr.Spec((n,), tr.float64), tr.Spec((m,), tr.float64))
    files = tr.export_library(tmp_path / "refusing", {"cubes": program})
    source = tmp_path / "caller.c"
    source.write_text(
        '#include "refusing.h"\n#include <stdio.h>\nint main(void) { double x = 0, y = 0, r = 0;\n'
        f'printf("%d %d %d", cubes(1, 1, &x, &y, &r), cubes({1 << 30}, {1 << 40}, &x, &y, &r),\n'
        f" cubes({1 << 61}, {1 << 61}, &x, &y, &r)); return 0; }}\n"
    )
    assert built(tmp_path, "cc", source, files.object) == "0 1 1"


OLDER = """
struct { unsigned vendor, type, subtype, features[1]; } __cpu_model;
int asked;
int __cpu_indicator_init(void) { asked++; __cpu_model.features[0] = FEATURES; return 0; }
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
@pytest.mark.parametrize(
    ("level", "features", "runs"),
    [
        ("generic", 1 << 2, False),  # without SSE4.2
        ("avx2", 1 << 2 | 1 << 8, False),  # x86-64-v2
        ("avx2", 1 << 2 | 1 << 8 | 1 << 10 | 1 << 16 | 1 << 17, False),  # without FMA
        ("avx512", 0x30500 | 1 << 2 | 1 << 14, False),  # x86-64-v3
        ("generic", 0xFFFFFFFF, True),
    ],
)
def test_an_older_processor_is_refused(tmp_path: Path, level: str, features: int, runs: bool) -> None:
    """The record of the processor is replaced; also the refusal needs no newer instruction."""
    files = refusing(tmp_path, level=level, shared=False)
    source, older = tmp_path / "caller.c", tmp_path / "older.c"
    source.write_text(REFUSED)
    older.write_text(OLDER.replace("FEATURES", f"{features}u"))
    rows = built(tmp_path, "cc", source, older, files.object).splitlines()
    if runs:
        assert rows[5].startswith("0 1 ")
        return
    text = "5 0 picked: this processor or its system lacks instructions that the library was built for (x86-64-v"
    assert all(row.startswith(text) and row.endswith(f"with a lower level than {level}") for row in rows)


@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("objdump") is None, reason="no objdump of x86-64")
def test_refusals_use_no_newer_instruction(tmp_path: Path) -> None:
    """What runs before the processor is known has no wide registers; the program itself has them."""
    files = refusing(tmp_path, level="avx512", shared=False)
    shown = subprocess.run(["objdump", "-d", str(files.object)], check=True, capture_output=True, text=True).stdout
    parts = {}
    for block in shown.split("\n\n"):
        name, found, text = block.partition(">:\n")
        if found:
            parts[name.rpartition("<")[2]] = text
    early = [text for name, text in parts.items() if name.startswith("picked") or name.endswith(".supported")]
    assert len(early) in (3, 4) and len(parts) > len(early)
    assert not any("%ymm" in text or "%zmm" in text or "\tv" in text for text in early)
    assert any("%ymm" in text or "%zmm" in text for text in parts.values())


def test_the_level_is_recorded(tmp_path: Path) -> None:
    for level, processor in (("generic", "x86-64-v2: SSE4.2"), ("avx2", "x86-64-v3"), ("neon", "every AArch64")):
        files = refusing(tmp_path, level=level, shared=False)
        assert f"Built for the vector level {level} ({processor}" in files.header.read_text()
        assert f'"level": "{level}"'.encode() in files.object.read_bytes()
    files = refusing(tmp_path)
    assert files.library is not None
    description = tr.load_library(files.library, "picked")["picked"].description
    assert f"vector level {description.level} ({description.processor})" in files.header.read_text()


def test_a_library_for_another_processor_is_an_error_of_python(tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("levels of x86-64")
    files, older = refusing(tmp_path, level="avx2", shared=False), tmp_path / "older.c"
    older.write_text(OLDER.replace("FEATURES", "260u"))
    command = ["cc", "-shared", "-fPIC", "-o", str(tmp_path / "libolder.so"), str(files.object), str(older), "-lm"]
    subprocess.run(command, check=True)
    with pytest.raises(BackendUnavailableError, match="lacks instructions that the library was built for .*AVX2"):
        tr.load_library(tmp_path / "libolder.so", "picked")["picked"](np.zeros(4))


INDEXED: dict[str, Any] = {
    "element": lambda x, i: x[i] * 2.0,
    "update": lambda x, i: x.at[i % x.shape[0]].set(7.0),
    "gradient": ad.grad(lambda x, i: tr.sum(x[i] ** 2)),
    "take": lambda x, i: tr.take(x, tr.asarray([0, 1]) + i),
    "search": lambda x, i: x[tr.searchsorted(x, tr.sum(x)) % x.shape[0]] + i,
    "loop": lambda x, i: tr.fori_loop(0, 3, lambda k, c: c + x[k + i], tr.asarray(0.0)),
    "window": lambda x, i: tr.dynamic_slice(x, (i,), (1,)),
    "largest": lambda x, i: tr.max(x) + i,
}


@pytest.mark.parametrize("name", INDEXED)
def test_empty_arrays_are_refused_where_elements_are_asked_for(tmp_path: Path, name: str) -> None:
    f = INDEXED[name]
    program = tr.trace(f, tr.Spec((tr.dim("n"),), tr.float64), tr.Spec((), tr.int64))
    files = tr.export_library(tmp_path / "indexed", {"indexed": program})
    assert files.library is not None
    run = tr.load_library(files.library, "indexed")["indexed"]
    for n in (1, 2, 4):
        x, i = np.arange(1.0, n + 1), np.asarray(n - 1)
        want = tr.compile(f)(tr.asarray(x), tr.asarray(i))
        np.testing.assert_array_equal(np.asarray(run(x, i)), np.asarray(want))
    with pytest.raises(ShapeError, match="indexed: .*; the sizes are {'n': 0}"):
        run(np.zeros(0), np.asarray(5))
    assert re.search(r"^ \* \d: .*(n >= 1|1 <= n|2\*n >= 2)", files.header.read_text(), re.MULTILINE)
