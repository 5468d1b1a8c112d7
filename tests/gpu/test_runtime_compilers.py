"""Compilers of kernels: what is compiled once, what is kept on disk, what is said where something is missing."""

import ctypes
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from packaging.requirements import Requirement

from hand_written import of_op
from tenferro_gpu import _stack
from tenferro_gpu.compiling import RuntimeCompiler, _compiler, _libraries, runtime_library
from tenferro_gpu.rendering import CudaRenderer
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.device_model import CompileError, ObjectCache, ProgramSpec, user_cache
from tenferro_tensor_core import BackendUnavailableError
from workspace import ROOT


class Library:
    """In the place of NVRTC: the code is the text of what was asked."""

    kind = "cuda"

    def __init__(self, version=(13, 0)):
        self.version, self.compiled, self.gate = version, [], threading.Event()
        self.gate.set()

    def options(self, architecture):
        return (f"--gpu-architecture=sm_{architecture}",)

    def compile(self, source, architecture):
        self.gate.wait()
        self.compiled.append((source, architecture))
        return f"{source} for {architecture}".encode()


def spec(source="text"):
    return ProgramSpec(source, "kernel", (), 0, (), ())


def test_equal_sources_are_compiled_once():
    library: Any = Library()
    compiler = RuntimeCompiler(library, "90")
    first, again = compiler.compile(spec()), compiler.compile(spec())
    assert first.code == again.code == b"text for 90" and first.cache_key == again.cache_key
    compiler.compile(spec("other"))
    assert [source for source, _ in library.compiled] == ["text", "other"]
    assert compiler.stats() == {"loaded": 2, "compiled": 2, "from_disk": 0, "code_bytes": 23}


def test_threads_that_want_one_kernel_wait_for_one_of_them():
    library: Any = Library()
    library.gate.clear()
    compiler = RuntimeCompiler(library, "90")
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(compiler.compile, spec()) for _ in range(4)]
        library.gate.set()
        assert {f.result().code for f in found} == {b"text for 90"}
    assert len(library.compiled) == 1
    assert not compiler._making  # no lock is left behind


def test_code_is_kept_on_disk_by_source_compiler_and_architecture(tmp_path):
    def made(library, architecture):
        return RuntimeCompiler(library, architecture, ObjectCache(tmp_path / architecture))

    library: Any = Library()
    made(library, "90").compile(spec())
    again = made(library, "90")
    assert again.compile(spec()).code == b"text for 90"
    assert again.stats()["from_disk"] == 1 and len(library.compiled) == 1
    assert made(library, "80").compile(spec()).code == b"text for 80"
    newer = Library((13, 1))
    made(newer, "90").compile(spec())
    assert len(library.compiled) == 2 and len(newer.compiled) == 1
    again.clear()
    assert again.stats()["loaded"] == 0
    made(library, "90").compile(spec())
    assert len(library.compiled) == 3


@pytest.fixture
def fresh_caches():
    user_cache.cache_clear()
    yield
    user_cache.cache_clear()


@pytest.mark.usefixtures("fresh_caches")
def test_the_compiler_of_the_process_keeps_code_in_the_folder_of_its_architecture(monkeypatch, tmp_path):
    monkeypatch.setattr(_compiler, "runtime_library", lambda kind, major: Library())
    monkeypatch.setenv("TENFERRO_CACHE_DIR", str(tmp_path))
    _compiler.compiler.__wrapped__("rocm", "gfx90a:sramecc+").compile(spec())
    assert len(list((tmp_path / "rocm" / "gfx90a").glob("*.obj"))) == 1


@pytest.mark.usefixtures("fresh_caches")
def test_without_platformdirs_code_stays_in_memory_and_the_log_says_so(monkeypatch, caplog):
    monkeypatch.setattr(_compiler, "runtime_library", lambda kind, major: Library())
    monkeypatch.delenv("TENFERRO_CACHE_DIR", raising=False)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    monkeypatch.setattr("tenferro_tensor._libraries._imported", {})
    assert _compiler.compiler.__wrapped__("cuda", "90").compile(spec()).code == b"text for 90"
    assert "compiled kernels are not kept on disk" in caplog.text and "platformdirs" in caplog.text


@pytest.fixture
def nvrtc():
    try:
        return runtime_library("cuda")
    except BackendUnavailableError as reason:
        pytest.skip(str(reason))


def test_what_nvrtc_refuses_is_quoted(nvrtc):
    with pytest.raises(
        CompileError, match=r"nvrtc refuses a kernel for 90: NVRTC_ERROR_COMPILATION\n(.*\n)*.*undefined"
    ):
        nvrtc.compile("__global__ void f() { undefined(); }", "90")
    with pytest.raises(CompileError, match="nvrtc refuses a kernel for 17: "):
        nvrtc.compile("", "17")


def test_nvrtc_gives_code_that_differs_between_architectures(nvrtc):
    assert nvrtc.version[0] >= 12
    rendered = CudaRenderer().render(of_op(arithmetic.mul.op(), "float64", "float64"), "product")
    codes: set[Any] = {RuntimeCompiler(nvrtc, architecture).compile(rendered).code for architecture in ("80", "90")}
    assert len(codes) == 2 and all(code.startswith(b"\x7fELF") and b"kernel_product" in code for code in codes)


@pytest.mark.parametrize(("kind", "advice"), [("cuda", "pip install nvidia-cuda-nvrtc"), ("rocm", "install ROCm")])
def test_a_missing_compiler_is_named(monkeypatch, kind, advice):
    monkeypatch.setattr(_libraries, "_candidates", lambda files: iter(files[:1]))
    monkeypatch.setattr(ctypes, "CDLL", lambda path: (_ for _ in ()).throw(OSError(path)))
    with pytest.raises(BackendUnavailableError, match=rf"(nvrtc|hiprtc) is not found \(only nothing\); {advice}"):
        runtime_library.__wrapped__(kind)


def test_a_compiler_of_another_version_is_not_taken(nvrtc):
    with pytest.raises(
        BackendUnavailableError, match=r"nvrtc of version 11 is not found \(only .*libnvrtc.* of version 1"
    ):
        runtime_library.__wrapped__("cuda", 11)


def test_extras_bring_libraries_of_one_version():
    """The compiler, cuTENSOR and CuPy of the same major version of CUDA, and a CuPy that is new enough."""
    extras = tomllib.loads((ROOT / "packages/gpu/pyproject.toml").read_text())["project"]["optional-dependencies"]
    for major in (12, 13):
        found = {Requirement(text).name: Requirement(text) for text in extras[f"cuda{major}"]}
        assert found[f"cupy-cuda{major}x"].extras == {"ctk"} and f"cutensor-cu{major}" in found
    for name, texts in extras.items():
        (cupy,) = [Requirement(text) for text in texts if text.startswith("cupy")]
        assert str(cupy.specifier) == f">={_stack.OLDEST}", name


def test_the_compiler_of_the_required_version_is_taken_among_several(monkeypatch):
    """An environment may have several: that of the tests, and that of the driver."""

    class Installed:
        def __init__(self, kind, path):
            self.version = (int(path.rpartition(".")[2]), 0)

    monkeypatch.setattr(_libraries, "RuntimeLibrary", Installed)
    monkeypatch.setattr("ctypes.CDLL", lambda path: path)
    monkeypatch.setattr(_libraries, "_candidates", lambda files: iter(("a/libnvrtc.so.13", "b/libnvrtc.so.12")))
    _libraries.runtime_library.cache_clear()
    try:
        assert [_libraries.runtime_library("cuda", major).version[0] for major in (12, 13, None)] == [12, 13, 13]
    finally:
        _libraries.runtime_library.cache_clear()
