"""Caches, the runtime object, and the door for operation families."""

import contextvars
import threading
from collections.abc import Generator

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime import extension
from tenferro_runtime.extension import (
    BoundedCache,
    General,
    Inactive,
    Linear,
    ProgramError,
    RegistryError,
    Slopes,
    Spec,
    caches,
    catalog,
    check_family_id,
    check_program,
    check_rule,
    family_id,
    primitive,
)
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError

F8 = np.dtype("float64")


def test_a_full_cache_drops_what_was_used_longest_ago() -> None:
    cache = BoundedCache("test", 2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert list(cache.table) == ["a", "c"] and cache.get("b", 0) == 0
    assert cache.stats() == {"owner": "test", "size": 2, "bound": 2, "hits": 1, "misses": 1, "evictions": 1}
    cache.clear()
    assert len(cache) == 0 and repr(cache) == "<cache of test: 0/2>"


def test_a_full_cache_without_recency_starts_anew() -> None:
    cache = BoundedCache("test", 2, recency=False)
    for i in range(3):
        cache.put(i, i)
    assert cache.table == {2: 2} and cache.evictions == 2
    assert cache.get_or_make(5, lambda: 6) == cache.get_or_make(5, lambda: 7) == 6


def test_a_cached_none_is_an_entry() -> None:
    cache = BoundedCache("test", 2)
    made = []
    for _ in range(2):
        assert cache.get_or_make("k", lambda: made.append(1)) is None
    assert made == [1]


def test_a_cache_needs_room() -> None:
    with pytest.raises(ArgumentError, match="a cache holds at least one entry, but bound=0 was given"):
        BoundedCache("test", 0)


def test_caches_are_listed_while_they_live() -> None:
    cache = BoundedCache("a test that lists caches", 1)
    assert cache in caches()
    assert "a test that lists caches" in [s["owner"] for s in tr.Runtime().stats()]
    del cache
    assert "a test that lists caches" not in [c.owner for c in caches()]


def test_threads_get_one_value_and_keep_the_bound() -> None:
    cache = BoundedCache("test", 8)
    seen: dict[int, set[object]] = {k: set() for k in range(8)}

    def work() -> None:
        for i in range(400):
            seen[i % 8].add(cache.get_or_make(i % 8, object))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(len(values) == 1 for values in seen.values()) and len(cache) == 8


def test_the_runtime_of_a_scope() -> None:
    default = tr.current_runtime()
    with tr.Runtime(passes=(), programs_per_function=3) as runtime:
        assert tr.current_runtime() is runtime
        f = tr.compile(lambda x: x + 1 + 0 * x)
        with runtime:
            assert tr.current_runtime() is runtime
    assert tr.current_runtime() is default
    f(tensor([1.0]))
    assert f.cache_info().bound == 3 and repr(runtime) == "<Runtime: 0 passes, check=False, deterministic=False>"
    seen = []
    with runtime:
        thread = threading.Thread(target=lambda: seen.append(tr.current_runtime()))
        thread.start()
        thread.join()
    assert seen == [default]  # scopes are per context
    with pytest.raises(ArgumentError, match="bounds are at least 1, got programs_per_function=0"):
        tr.Runtime(programs_per_function=0)


def test_one_runtime_is_open_in_many_threads_at_once() -> None:
    """Leaving it in one of them closes nobody else's scope."""
    runtime, together = tr.Runtime(), threading.Barrier(4)
    seen: list[tr.Runtime] = []

    def enter() -> None:
        with runtime:
            together.wait(timeout=60)
            seen.append(tr.current_runtime())
        seen.append(tr.current_runtime())

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen.count(runtime) == 4 and seen.count(tr.current_runtime()) == 4


def test_a_scope_that_is_closed_elsewhere_closes_nothing_there() -> None:
    def opened() -> Generator[None, None, None]:
        with tr.Runtime():
            yield

    generator = opened()
    contextvars.copy_context().run(next, generator)
    with tr.Runtime() as mine:
        generator.close()
        assert tr.current_runtime() is mine


def test_clearing_the_runtime_forgets_programs_and_nothing_else() -> None:
    calls = [0]

    @tr.compile
    def f(x):
        calls[0] += 1
        return x + 1

    assert f(tensor([1.0])).tolist() == [2.0]
    tr.current_runtime().clear()
    assert f.cache_info().size == 0
    assert f(tensor([1.0])).tolist() == [2.0] and calls[0] == 2


def test_a_checking_runtime_finds_a_pass_that_breaks_the_law() -> None:
    def drops_everything(program):
        return program.with_(equations=())

    with tr.Runtime(passes=(drops_everything,), check=True):
        f = tr.compile(lambda x: x + 1)
    with pytest.raises(ProgramError, match="output v1 is not defined"):
        f(tensor([1.0]))


def test_the_door_exports_what_it_names() -> None:
    assert len(set(extension.__all__)) == len(extension.__all__)
    for name in extension.__all__:
        assert getattr(extension, name) is not None


def test_family_ids() -> None:
    assert family_id("my-company.waves", "hilbert", 2) == "my-company.waves.hilbert.v2"
    for wrong in (
        "svd",
        "tenferro-linalg.svd",
        "tenferro-linalg.svd.v0",
        "tenferro-linalg.svd.1",
        "A.b.v1",
        "a.b c.v1",
    ):
        with pytest.raises(RegistryError, match=r"is no family id; the form is '<distribution>\.<op>\.v<major>', for"):
            check_family_id(wrong)


@pytest.mark.parametrize(
    ("prim", "rule", "text"),
    [
        (catalog.reduce_sum, Slopes(x=1), "Slopes is for element-wise primitives, and reduce_sum is not"),
        (catalog.tanh, Slopes(z=1), r"Slopes\(z=...\) of tanh: there is no such operand; there are x"),
        (catalog.mul, Slopes(x=lambda g: g), r"Slopes\(x=...\) of mul asks for 'g'; it may ask for out, x, x_spec, y"),
        (catalog.reduce_sum, Linear(x=lambda g, axis: g), "asks for 'axis'; it may ask for axes, g, out, x, x_spec"),
        (catalog.reduce_sum, Linear(x=lambda g, **kw: g), r"takes \*\*kw, but arguments of rules are passed by name"),
        (catalog.iota, General(jvp=lambda *a: None), "iota has no operands, hence no derivative rule"),
    ],
)  # fmt: skip
def test_rules_that_cannot_fit_are_refused(prim, rule, text) -> None:
    with pytest.raises(RegistryError, match=text):
        check_rule(prim, rule)


def test_names_of_outputs_and_cotangents_are_no_names_of_operands() -> None:
    @primitive(elementwise=True)
    def written(x: Spec, out: Spec) -> Spec:
        """The second operand."""
        return out

    @primitive
    def weighed(g: Spec) -> Spec:
        """Itself."""
        return g

    for prim, rule, name in ((written, Slopes(x=0, out=1), "out"), (weighed, Linear(g=lambda g: g), "g")):
        with pytest.raises(RegistryError, match=rf"{prim.name} has a parameter '{name}', .*; rename it, or register"):
            check_rule(prim, rule)
    check_rule(written, General(jvp=lambda *a: None))


def test_rules_that_fit() -> None:
    check_rule(catalog.mul, Slopes(x=lambda y: y, y=lambda x: x))
    check_rule(catalog.reduce_sum, Linear(x=lambda g, x_spec, axes: g))
    check_rule(catalog.concatenate, Linear(xs=lambda g, axis: g))
    check_rule(catalog.iota, Inactive())
    check_rule(catalog.tanh, General(vjp=lambda *a, **k: None))


def test_a_kernel_for_every_backend() -> None:
    registry = extension.Registry()

    @primitive
    def anywhere(x: Spec) -> Spec:
        """Itself."""
        return x

    fallback, own = (lambda ins, outs: lambda x: x for _ in range(2))
    registry.kernel(anywhere, "*", fallback)
    registry.kernel(anywhere, "cuda", own)
    assert registry.find("kernel", anywhere, "cpu") is fallback
    assert registry.find("kernel", anywhere, "cuda") is own


def test_a_family_can_be_written_with_the_door_alone() -> None:
    from tenferro_runtime.extension import REGISTRY

    @primitive(family=family_id("tests", "square_sum", 1))
    def square_sum(x: Spec) -> Spec:
        """Sum of squares."""
        return x.with_(shape=())

    REGISTRY.kernel(square_sum, "cpu", lambda ins, outs: lambda x: (x * x).sum())
    assert float(square_sum(tensor([1.0, 2.0]))) == 5.0
    program = check_program(tr.trace(lambda x: square_sum(x) * 2, Spec((2,), F8)))
    assert float(program.run(np.asarray([1.0, 2.0]))[0]) == 10.0
