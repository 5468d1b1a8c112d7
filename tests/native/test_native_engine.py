"""The engine: what it compiles, what it refuses, and what it keeps on disk."""

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenferro_cpu.native import available
from tenferro_tensor.device_model import CompileError, ObjectCache

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

PLUS = "define i64 @f(i64 %x) {{\n  %y = add i64 %x, {}\n  ret i64 %y\n}}"
CALLING = "declare i64 @{0}(i64)\ndefine i64 @f(i64 %x) {{\n  %y = call i64 @{0}(i64 %x)\n  ret i64 %y\n}}"
UNARY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "objects")


@pytest.fixture
def make(cache):
    from tenferro_cpu.native import Engine

    return lambda: Engine(cache)


def test_equal_names_of_different_texts_are_different_functions(make):
    engine = make()
    one, two = (UNARY(engine.function(PLUS.format(k), "f")) for k in (1, 2))
    assert (one(10), two(10)) == (11, 12)


def test_equal_text_is_compiled_once_also_by_threads(make):
    engine = make()
    found: list[int] = []
    work = [threading.Thread(target=lambda: found.append(engine.function(PLUS.format(3), "f"))) for _ in range(8)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(set(found)) == 1 and engine.stats()["compiled"] == 1


def test_code_stays_when_its_engine_is_gone():
    code = (
        "import ctypes, gc\n"
        "from tenferro_cpu.native import Engine\n"
        "calls = [\n"
        "    ctypes.CFUNCTYPE(ctypes.c_int64)(Engine().function(f'define i64 @f() {{ ret i64 {k} }}', 'f'))\n"
        "    for k in range(20)\n"
        "]\n"
        "gc.collect()\n"
        "print(sum(call() for call in calls))"
    )
    assert run(code) == "190"


def test_another_engine_finds_the_object_on_disk(make):
    make().function(PLUS.format(4), "f")
    engine = make()
    assert UNARY(engine.function(PLUS.format(4), "f"))(1) == 5
    assert engine.stats()["from_disk"] == 1 and engine.stats()["compiled"] == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-7],
        lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:],
        lambda data: b"x" * 4000,
    ],
    ids=["empty", "cut", "changed", "foreign"],
)
def test_damaged_entries_are_replaced(make, cache, damage):
    first = make()
    first.function(PLUS.format(5), "f")
    path = cache._path(first.key(PLUS.format(5), ("f",)))
    path.write_bytes(damage(path.read_bytes()))
    engine = make()
    assert UNARY(engine.function(PLUS.format(5), "f"))(1) == 6
    assert engine.stats()["compiled"] == 1
    assert cache.get(engine.key(PLUS.format(5), ("f",))) is not None


def test_an_entry_under_another_key_is_not_loaded(cache):
    cache.put("a1", b"code")
    cache._path("a1").rename(cache._path("b2"))
    assert cache.get("b2") is None


def test_the_folder_keeps_its_bound_and_drops_what_was_used_longest_ago(tmp_path):
    cache = ObjectCache(tmp_path / "objects", bound=1000)
    cache.put("first", b"")
    for k in range(5):
        cache._path(f"k{k}").write_bytes(ObjectCache._entry(f"k{k}", b"x" * 200))
        os.utime(cache._path(f"k{k}"), (k, k))
    assert cache.get("k0") is not None  # used just now
    cache.prune()
    assert cache.get("k0") is not None and cache.get("k1") is None
    assert sum(p.stat().st_size for p in cache.folder.glob("*.obj")) <= 1000


def test_a_new_process_looks_at_the_whole_folder_once_a_day(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(ObjectCache, "prune", lambda self: (looked.append(1), (self.folder / "pruned").touch()))
    for age, looks in ((0, 1), (60, 0), (90_000, 1)):
        looked.clear()
        mark = tmp_path / "objects" / "pruned"
        if mark.exists():
            os.utime(mark, (mark.stat().st_mtime - age,) * 2)
        cache = ObjectCache(tmp_path / "objects", bound=1000)
        cache.put("a", b"")
        cache.put("b", b"")
        assert len(looked) == looks
        cache.put("c", b"x" * 200)
        assert len(looked) == looks + 1  # an eighth of the bound


@pytest.mark.skipif(os.name != "posix", reason="needs file modes")
def test_a_folder_that_cannot_be_looked_through_costs_nothing_but_its_bound(tmp_path, monkeypatch):
    def refused(self):
        raise PermissionError(str(self))

    monkeypatch.setattr(Path, "iterdir", refused)
    cache = ObjectCache(tmp_path / "objects", bound=8)
    cache.put("ab", b"longer than the bound")
    assert cache.get("ab") == b"longer than the bound"


def test_external_functions_are_given_by_address(make):
    engine = make()
    keep = UNARY(lambda x: 7 * x)
    address = ctypes.cast(keep, ctypes.c_void_p).value
    assert UNARY(engine.function(CALLING.format("test_seven"), "f", {"test_seven": address}))(6) == 42
    with pytest.raises(CompileError, match="'test_seven' is defined already, at another address"):
        engine.function(PLUS.format(99), "f", {"test_seven": address + 1})


def test_unknown_functions_are_an_error_and_no_crash(make):
    with pytest.raises(CompileError, match="calls nobody_has_this, which nothing defines"):
        make().function(CALLING.format("nobody_has_this"), "f")


def test_refused_text_quotes_the_compiler(make):
    with pytest.raises(CompileError, match="LLVM rejects the text of f: LLVM IR parsing error\n.*expected type"):
        make().function("define x", "f")
    with pytest.raises(CompileError, match="defines no function 'g'"):
        make().function(PLUS.format(1), "g")


def test_optimised_code_is_another_entry(make):
    engine = make()
    assert UNARY(engine.function(PLUS.format(6), "f", level=2))(1) == 7
    assert engine.key(PLUS.format(6), ("f",), 2) != engine.key(PLUS.format(6), ("f",))


def test_two_processes_compile_one_kernel_once(tmp_path):
    text = (
        "from pathlib import Path; import sys\n"
        "from tenferro_tensor.device_model import ObjectCache; from tenferro_cpu.native import Engine\n"
        f"e = Engine(ObjectCache(Path({str(tmp_path / 'o')!r})))\n"
        "sys.stdin.readline()\n"
        f"[e.function({PLUS!r}.format(k), 'f') for k in range(20)]\n"
        "print(e.stats()['compiled'])"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    counts = []
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        counts.append(int(process.communicate()[0]))
    assert sum(counts) == 20


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_the_backend_imports_no_compiler():
    code = "import sys, tenferro_cpu, tenferro_cpu.native as n; print(n.available(), 'llvmlite' in sys.modules)"
    assert run(code) == "True False"


def test_the_switch_turns_native_kernels_off():
    code = (
        "from tenferro_cpu.native import available, engine\n"
        "print(available())\n"
        "try: engine()\n"
        "except ImportError as e: print(e)"
    )
    assert run(code, TENFERRO_CPU_JIT="0").splitlines() == [
        "False",
        "native CPU kernels were requested, but TENFERRO_CPU_JIT=0 turns them off; "
        "the NumPy kernels serve without them",
    ]


def test_the_environment_bounds_the_vector_level(monkeypatch):
    from tenferro_cpu.native.codegen.machine import _jit

    def level(asked: str) -> str:
        monkeypatch.setenv("TENFERRO_CPU_LEVEL", asked)
        monkeypatch.setattr(_jit, "_engine", None)
        return _jit.engine().host.level

    best = level("")
    assert level("generic") == "generic"
    assert level("avx2") in ("avx2", "generic", "neon")
    monkeypatch.delenv("TENFERRO_CPU_LEVEL")
    monkeypatch.setattr(_jit, "_engine", None)
    assert _jit.engine().host.level == best


@pytest.mark.parametrize("limit", ["avx512", "avx2", "neon", "generic"])
def test_a_bound_takes_away_what_is_above_it_and_nothing_else(limit):
    import llvmlite.binding as llvm

    from tenferro_cpu.native._host import detect

    whole, host = detect(llvm), detect(llvm, limit)
    assert host.level in (limit, whole.level)
    assert host.level != whole.level or host == whole
    assert (host.level == limit) == (limit in ("generic", whole.level) or (limit, whole.level) == ("avx2", "avx512"))


def test_an_unknown_vector_level_is_refused():
    from tenferro_cpu.native import Engine
    from tenferro_tensor_core import ArgumentError

    with pytest.raises(ArgumentError, match=r"vector level 'sse9' was requested; the levels are avx512, avx2, neon"):
        Engine(limit="sse9")


def test_the_folder_is_chosen_by_the_environment(tmp_path):
    code = "from tenferro_cpu.native import engine; print(engine()._cache.folder)"
    assert Path(run(code, TENFERRO_CACHE_DIR=str(tmp_path))) == tmp_path / "cpu"
