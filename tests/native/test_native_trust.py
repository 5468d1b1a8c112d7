"""Machine code on disk is loaded only from where nobody else can have put it, and damage costs a compilation."""

import ctypes
import os
import subprocess
import sys
import textwrap

import pytest

from tenferro_cpu.native import available
from tenferro_tensor.device_model import ObjectCache

posix = pytest.mark.skipif(os.name != "posix", reason="needs file modes")
root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
native = pytest.mark.skipif(not available(), reason="native kernels are off")

KEY = "ab12"
SOMEBODY = 12345
TEXT = "define i64 @f(i64 %x) {\n  %y = add i64 %x, 3\n  ret i64 %y\n}"


@pytest.fixture
def cache(tmp_path):
    found = ObjectCache(tmp_path / "home" / "cache" / "objects")
    found.put(KEY, b"code")
    assert found.get(KEY) == b"code"
    return found


def again(cache):
    """The cache as the next process finds it."""
    return ObjectCache(cache.folder)


@posix
def test_folders_on_the_way_are_made_for_this_user_only(cache):
    assert {part.stat().st_mode & 0o777 for part in (cache.folder, *list(cache.folder.parents)[:2])} == {0o700}
    assert cache._path(KEY).stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("above", [0, 1, 2])
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o722])
def test_nothing_is_loaded_where_others_may_write(cache, above, mode):
    folder = (cache.folder, *cache.folder.parents)[above]
    folder.chmod(mode)
    assert cache.get(KEY) is None, "also where the folder was changed after it was first seen"
    refused = again(cache)
    assert refused.get(KEY) is None
    assert refused.refused == f"others may write to {folder} (mode {mode:04o}; chmod go-w mends it)"
    refused.put("ff", b"code")
    assert not (cache.folder / "ff.obj").exists()
    folder.chmod(0o755)
    assert again(cache).get(KEY) == b"code"


@posix
def test_a_sticky_folder_may_be_on_the_way_but_holds_no_code(cache):
    cache.folder.parent.chmod(0o1777)
    assert again(cache).get(KEY) == b"code"
    cache.folder.chmod(0o1777)
    assert again(cache).get(KEY) is None


@root
@pytest.mark.parametrize("above", [0, 1, 2])
def test_nothing_is_loaded_from_folders_of_others(cache, above):
    folder = (cache.folder, *cache.folder.parents)[above]
    os.chown(folder, SOMEBODY, -1)
    assert again(cache).refused == f"{folder} belongs to another user (uid {SOMEBODY})"
    assert cache.get(KEY) is None


@posix
@pytest.mark.parametrize("mode", [0o666, 0o660, 0o622])
def test_an_entry_that_others_may_write_is_made_again(cache, mode):
    cache._path(KEY).chmod(mode)
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code" and cache._path(KEY).stat().st_mode & 0o777 == 0o600


@root
def test_an_entry_of_another_user_is_made_again(cache):
    os.chown(cache._path(KEY), SOMEBODY, -1)
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


@posix
def test_links_are_not_followed(cache, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    cache._path(KEY).rename(elsewhere)
    cache._path(KEY).symlink_to(elsewhere)
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code" and not cache._path(KEY).is_symlink()


@posix
def test_a_folder_behind_a_link_is_judged_by_where_it_is(cache, tmp_path):
    (tmp_path / "link").symlink_to(cache.folder)
    assert ObjectCache(tmp_path / "link").get(KEY) == b"code"
    cache.folder.chmod(0o777)
    assert ObjectCache(tmp_path / "link").get(KEY) is None


@posix
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_counts_as_absent(cache, kind):
    path = cache._path(KEY)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)  # reading it would wait for a writer for ever
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == (None if kind == "folder" else b"code")


@posix
def test_a_pipe_in_the_place_of_a_lock_holds_nobody_up(cache):
    for stripe in range(64):
        os.mkfifo(cache.folder / f"{stripe:02}.lock")
    with cache.writing(KEY):
        pass


@pytest.mark.parametrize("key", ["../objects/ab12", "", "ab12\n", "a/b", "."])
def test_a_key_names_a_file_of_the_folder(cache, key):
    assert cache.get(key) is None


@native
def test_objects_cut_anywhere_are_compiled_again(tmp_path):
    """Their checksum is right, as if they had been stored like that: LLVM must not be the one to find out."""
    done = child(
        """
        import ctypes, sys
        from pathlib import Path
        from tenferro_cpu.native import Engine
        from tenferro_tensor.device_model import ObjectCache
        TEXT, folder = sys.argv[1], Path(sys.argv[2])
        cache = ObjectCache(folder)
        first = Engine(cache)
        first.function(TEXT, "f")
        key = first.key(TEXT, ("f",))
        whole = cache.get(key)
        for length in (0, 1, 2, 40, len(whole) // 3, len(whole) // 2, len(whole) - 64, len(whole) - 1):
            cache.put(key, whole[:length])
            engine = Engine(cache)
            address = engine.function(TEXT, "f")
            assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(4) == 7
            assert engine.stats()["compiled"] == 1 and cache.get(key) == whole, length
        """,
        TEXT,
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr


@native
def test_an_object_that_lacks_the_function_is_compiled_again(tmp_path):
    from tenferro_cpu.native import Engine

    cache = ObjectCache(tmp_path)
    first = Engine(cache)
    other = TEXT.replace("@f", "@g")
    first.function(TEXT, "f")
    first.function(other, "g")
    cache.put(first.key(TEXT, ("f",)), cache.get(first.key(other, ("g",))))
    engine = Engine(cache)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.function(TEXT, "f"))(4) == 7
    assert engine.stats() | {"loaded": 1, "compiled": 1, "from_disk": 0} == engine.stats()


@native
@pytest.mark.parametrize("changed", ["llvmlite.__version__", "sys.version", "numpy.__version__"])
def test_another_build_compiles_its_own(tmp_path, monkeypatch, changed):
    from tenferro_cpu.native import Engine

    Engine(ObjectCache(tmp_path)).function(TEXT, "f")
    monkeypatch.setattr(changed, "2.99 of tomorrow")
    engine = Engine(ObjectCache(tmp_path))
    engine.function(TEXT, "f")
    assert engine.stats()["compiled"] == 1


@native
@posix
def test_a_refused_folder_costs_the_disk_only_and_the_log_says_why(tmp_path):
    tmp_path.chmod(0o777)
    done = child(PLAIN, TENFERRO_CACHE_DIR=str(tmp_path / "kernels"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["9.0", "True", "None"]
    assert done.stderr.count("compiled kernels are not kept on disk") == 1
    assert f"others may write to {tmp_path} (mode 0777" in done.stderr


@native
def test_without_platformdirs_machine_code_is_on_and_the_log_names_what_is_missing():
    done = child("import sys; sys.modules['platformdirs'] = None\n" + PLAIN, TENFERRO_CACHE_DIR="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["9.0", "True", "None"]
    assert "platformdirs, which knows the folder for it, is not installed" in done.stderr
    assert "llvmlite" not in done.stderr


PLAIN = """
import logging
logging.basicConfig(level=logging.WARNING)
import tenferro_runtime as tr
from tenferro_cpu import info
from tenferro_cpu.native import engine
engine()
print(float(tr.sum(tr.ones(3) * 3)), info()["native"], info()["cache"])
"""


def child(code: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
