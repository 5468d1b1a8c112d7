"""Objects and locks are put right in the child of a fork as long as they live, and every lock is one of these."""

import ast
import gc
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

import pytest

from tenferro_tensor_core import forks

PACKAGES = Path(__file__).parents[2] / "packages"

BARE = {
    ("tenferro_tensor_core/forks.py", "RLock"): "`new_lock` makes them here",
    (
        "tenferro_runtime/running/rendering/_background.py",
        "Condition",
    ): "around a lock of `new_lock`; made anew in a child",
    ("tenferro_runtime/placement/_timeline.py", "Lock"): "lives as long as one run, whose threads all vanish together",
    ("tenferro_tensor/conformance/_stream_checks.py", "Barrier"): "lives as long as a check, whose threads it starts",
    ("tenferro_tensor/conformance/_stream_checks.py", "Event"): "one thread waits for it, and nothing sets it",
    ("tenferro_ad/compiler_checks/_conduct.py", "Barrier"): "lives as long as a check, whose threads it starts",
    ("tenferro_cpu/pools/_thread.py", "allocate_lock"): "belongs to a thread, which a child loses with its pool",
}
"""Locks that `new_lock` does not make, and why they need no mending."""

KINDS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "allocate_lock"}


class Thing:
    mended = 0

    def forked(self) -> None:
        self.mended += 1


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others have registered is left alone."""
    for name in ("_alive", "_locks"):
        monkeypatch.setattr(forks, name, WeakSet())
    monkeypatch.setattr(forks, "_idle", [])


@pytest.mark.usefixtures("alone")
def test_what_is_alive_is_mended_and_nothing_is_kept_alive() -> None:
    kept, dropped = Thing(), Thing()
    for thing in (kept, dropped):
        forks.mended_after_fork(thing)
    del thing, dropped
    gc.collect()
    assert list(forks._alive) == [kept]
    forks._mend()
    assert kept.mended == 1


@pytest.mark.usefixtures("alone")
def test_locks_of_other_threads_are_free_and_those_of_this_one_stay() -> None:
    mine, theirs = forks.new_lock(), forks.new_lock()
    thread = threading.Thread(target=theirs.acquire)
    thread.start()
    thread.join()
    assert not theirs.acquire(blocking=False)
    with mine:
        forks._mend()  # as in the child
        assert mine._is_owned()
        assert theirs.acquire(blocking=False)
    assert not mine._is_owned()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.usefixtures("alone")
def test_contexts_are_open_around_a_fork_in_the_order_in_which_they_came() -> None:
    seen: list[str] = []

    @contextmanager
    def held(name: str):
        seen.append(f"{name} in")
        yield
        seen.append(f"{name} out")

    for name in ("one", "two"):
        forks.idle_at_fork(lambda name=name: held(name))  # type: ignore[misc]
    forks._before()
    seen.append("fork")
    forks._after()
    assert seen == ["one in", "two in", "fork", "two out", "one out"]


@pytest.mark.usefixtures("alone")
def test_contexts_that_an_awaited_import_adds_are_open_around_the_fork() -> None:
    seen: list[str] = []
    begun, end = threading.Event(), threading.Event()

    @contextmanager
    def awaited():
        end.set()  # the fork is about to wait for the import
        yield

    @contextmanager
    def added():
        seen.append("in")
        yield
        seen.append("out")

    def imports() -> None:
        with forks.importing():
            begun.set()
            end.wait()
            forks.idle_at_fork(added)

    forks.idle_at_fork(awaited)
    thread = threading.Thread(target=imports)
    thread.start()
    begun.wait()
    forks._before()
    seen.append("fork")
    forks._after()
    thread.join()
    assert seen == ["in", "fork", "out"]


def bare_locks(tree: ast.AST) -> set[str]:
    """Names of the functions of `threading` that a module makes locks with."""
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [f.attr for f in called if isinstance(f, ast.Attribute) and ast.unparse(f.value) == "threading"]
    return KINDS & {*names, *[f.id for f in called if isinstance(f, ast.Name) and f.id == "allocate_lock"]}


def test_every_lock_of_every_package_is_free_in_a_child() -> None:
    found = set()
    for path in sorted(PACKAGES.glob("*/src/**/*.py")):
        name = path.relative_to(PACKAGES).as_posix().split("/src/")[1]
        if "threading" in (text := path.read_text()) or "allocate_lock" in text:  # parsing takes long
            found |= {(name, kind) for kind in bare_locks(ast.parse(text))}
    assert found == set(BARE), "locks come from `new_lock`, or the table above says why one needs no mending"


def test_the_search_for_locks_finds_them() -> None:
    text = "import threading\nfrom _thread import allocate_lock\nx = threading.Event()\ny = [allocate_lock()]\n"
    assert bare_locks(ast.parse(text)) == {"Event", "allocate_lock"}
