"""Programs with loops and branches: step by step at first, then as one native function with the same results."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from interrupts import interrupt_after
from runtime_rooms import COMPILING
from tenferro_ad import grad, value_and_grad
from tenferro_cpu.native import available
from tenferro_runtime.lowering.native import how
from tenferro_runtime.running import fusion
from tenferro_tensor import Spec, tensor
from thorough import tries

pytestmark = [pytest.mark.optimised, pytest.mark.skipif(not available(), reason="no machine code here")]

NATIVE = "runs as one native function"
F8 = np.dtype("float64")


def recurrent(w: Any, b: Any, start: Any, xs: Any, reverse: bool) -> Any:
    def step(c: Any, x: Any) -> Any:
        h, total = c
        new = tr.tanh(h * w + x * b)
        return (new, total + new * x), (new - 1.0, h, total)

    return tr.scan(step, start, xs, reverse=reverse)


def leaves(found: Any) -> list[np.ndarray]:
    (h, total), rows = found
    return [np.asarray(x.numpy()) for x in (h, total, *rows)]


def newton(x: Any) -> Any:
    """Square roots by a loop that does not know how long it takes."""
    going = lambda c: tr.any(tr.abs(c * c - x) > 1e-9 * x)
    return tr.while_loop(going, lambda c: 0.5 * (c + x / c), tr.ones_like(x))


def chosen(k: Any, x: Any) -> Any:
    return tr.switch(k, [lambda v: v + 1, lambda v: v * v, lambda v: tr.sin(v)], x)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (1,), (1000,)])
@pytest.mark.parametrize("reverse", [False, True])
def test_first_and_later_calls_agree_bit_for_bit(dtype: str, shape: tuple[int, ...], reverse: bool) -> None:
    rng = np.random.default_rng(0)
    f = tr.compile(recurrent, static_argnames=("reverse",))

    def numbers(*extents: int) -> Any:
        found = rng.normal(size=extents)
        return tensor((found + 1j * rng.normal(size=extents) if dtype == "complex128" else found).astype(dtype))

    for steps in (40, 40, 40, 0, 1, 17, 2000 // shape[0]):
        w, b, c, xs = numbers(*shape), numbers(*shape), (numbers(*shape), numbers(*shape)), numbers(steps, *shape)
        got = leaves(f(w, b, c, xs, reverse=reverse))
        fusion.wait()
        assert f.explain(w, b, c, xs, reverse=reverse).form == NATIVE
        later = leaves(f(w, b, c, xs, reverse=reverse))
        want = leaves(recurrent(w, b, c, xs, reverse))
        for a, same, e in zip(got, later, want, strict=True):
            assert a.shape == e.shape and a.dtype == e.dtype and a.tobytes() == same.tobytes()
            np.testing.assert_allclose(a, e, rtol=3e-5 if dtype == "float32" else 1e-11, atol=1e-5)


F = tr.compile(recurrent, static_argnames=("reverse",))


@settings(max_examples=tries(16, 40))
@given(
    steps=st.integers(0, 80),
    n=st.integers(0, 6),
    seed=st.integers(0, 9),
    reverse=st.booleans(),
    stride=st.sampled_from([1, 2, -1]),
)
def test_strides_and_extents(steps: int, n: int, seed: int, reverse: bool, stride: int) -> None:
    rng = np.random.default_rng(seed)
    w, b, h, total = (tensor(rng.normal(size=n)) for _ in range(4))
    xs = tensor(rng.normal(size=(steps, 3, n)))[::stride, 1]
    got = leaves(F(w, b, (h, total), xs, reverse=reverse))
    fusion.wait()
    for a, e in zip(got, leaves(recurrent(w, b, (h, total), xs, reverse)), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-11, atol=1e-11)


def test_ten_sizes_are_compiled_once() -> None:
    from tenferro_cpu.native import engine

    f = tr.compile(lambda x, y: tr.scan(lambda c, i: (c * 0.5 + y * i, tr.sum(c)), x, tr.arange(7.0)))
    x = tensor(np.ones(3))
    f(x, x), f(x, x)
    fusion.wait()
    before = engine().stats()["loaded"]
    for n in range(1, 11):
        x, y = (tensor(v) for v in np.random.default_rng(n).normal(size=(2, n)))
        last, sums = f(x, y)
        c, want = x.numpy(), []
        for i in range(7):
            want.append(c.sum())
            c = c * 0.5 + y.numpy() * i
        np.testing.assert_allclose(last.numpy(), c, rtol=1e-12)
        np.testing.assert_allclose(sums.numpy(), want, rtol=1e-10, atol=1e-12)
    fusion.wait()
    assert engine().stats()["loaded"] == before


def test_sizes_worth_a_team_have_a_function_of_their_own() -> None:
    """The function of small sizes has no code for a team; both give equal bits."""
    from tenferro_cpu.native import engine

    def f(x: Any, y: Any) -> Any:
        a = x * y + tr.flip(x)
        return a - tr.sum(a), a[1:] * x[:-1], tr.max(a * 3.0)

    def natives() -> int:
        return engine().stats()["loaded"]

    def bits(g: Any, n: int) -> list[bytes]:
        return [r.numpy().tobytes() for r in g(*[tensor(v) for v in np.random.default_rng(n).normal(size=(2, n))])]

    small, large = 1000, 1_000_000
    first, other = tr.compile(f), tr.compile(f)
    for g, n in ((first, small), (other, large)):
        before = natives()
        bits(g, n), bits(g, n)
        fusion.wait()
        assert natives() > before
    before = natives()
    assert bits(first, small) == bits(other, small)
    assert natives() == before
    bits(first, large), bits(first, large)
    fusion.wait()
    assert bits(first, large) == bits(other, large)
    assert bits(first, small) == bits(other, small)


def test_a_long_loop_is_compiled_before_it_runs() -> None:
    f = tr.compile(lambda x: tr.scan(lambda c, _: (c * 0.999 + 1.0, None), x, None, length=200_000)[0])
    x = tensor(np.ones(3))
    found = f(x)
    assert f.explain(x).form == NATIVE
    np.testing.assert_allclose(found.numpy(), 1000.0 - 999.0 * 0.999**200_000)
    g = tr.compile(newton)
    np.testing.assert_allclose(g(tensor(np.arange(1.0, 5.0))).numpy(), np.sqrt(np.arange(1.0, 5.0)))
    assert g.explain(x).form == NATIVE


def test_bounds_inside_of_an_open_size() -> None:
    def rows(a: Any) -> Any:
        n = a.shape[0]
        return tr.fori_loop(
            0, n, lambda i, s: s + tr.fori_loop(0, tr.minimum(i, n), lambda j, t: t * 0.5 + a[i, j], 0.0), 0.0
        )

    f = tr.compile(rows)
    for n in (4, 4, 6, 1):
        a = np.random.default_rng(n).normal(size=(n, n))
        found, want = f(tensor(a)), 0.0
        for i in range(n):
            t = 0.0
            for j in range(i):
                t = t * 0.5 + a[i, j]
            want = want + t
        assert float(found) == want
        fusion.wait()
    assert f.explain(tensor(a)).form == NATIVE


def test_branches() -> None:
    f = tr.compile(chosen)
    x = tensor(np.arange(3.0))
    for k in (0, 1, 2, -1, 7, 0, 1, 2):
        np.testing.assert_array_equal(f(tensor(k), x).numpy(), chosen(tensor(k), x).numpy())
        fusion.wait()
    assert f.explain(tensor(0), x).form == NATIVE


def test_integers_of_the_user_wrap() -> None:
    """Sums of 64-bit integers are indices as far as lowering knows, but nothing says that they stay in range."""

    def f(x: Any, y: Any, a: Any) -> Any:
        return tr.fori_loop(0, 3, lambda i, s: tr.where(x * 3 + y * 5 < y * 5, s + a, s - a), a)

    args = tr.asarray(np.iinfo(np.int64).max), tr.asarray(1), tr.ones(40)
    compiled = tr.compile(f)
    compiled(*args)
    fusion.wait()
    np.testing.assert_array_equal(compiled(*args).numpy(), f(*args).numpy())


def test_gradients_go_through_native_loops() -> None:
    def loss(w: Any, xs: Any) -> Any:
        return tr.sum(tr.scan(lambda c, x: (tr.tanh(c * w + x), c), xs[0], xs)[0])

    rng = np.random.default_rng(0)
    compiled = tr.compile(value_and_grad(loss, argnums=(0, 1)))
    for steps in (30, 30, 30, 30, 50):
        w, xs = tensor(rng.normal(size=4)), tensor(rng.normal(size=(steps, 4)))
        value, pulled = compiled(w, xs)
        fusion.wait()
        np.testing.assert_allclose(value.numpy(), loss(w, xs).numpy(), rtol=1e-12)
        for got, want in zip(pulled, grad(loss, argnums=(0, 1))(w, xs), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)
    assert compiled.explain(w, xs).form == NATIVE


def test_recorded_programs_run_natively() -> None:
    program = tr.trace(lambda x: tr.scan(lambda c, i: (c + i, None), x, tr.arange(4.0))[0], np.ones(3))
    assert how(program).startswith("runs step by step at first")
    for _ in range(3):
        np.testing.assert_array_equal(program.run(np.ones(3))[0].numpy(), np.full(3, 7.0))
        fusion.wait()
    assert how(program) == program.explain().form == NATIVE
    assert (program.explain().peak_bytes or 0) >= 3 * 8
    open_ = tr.trace(newton, Spec((tr.dim("n"),), F8))
    np.testing.assert_allclose(open_.run(np.full(4, 9.0))[0].numpy(), 3.0)
    assert open_.explain(n=4).form == NATIVE and str(open_.explain(n=4)).endswith(NATIVE)


def test_deterministic_programs_keep_the_bits_of_single_steps() -> None:
    def added(x: Any) -> Any:
        return tr.scan(lambda c, row: (c + tr.sum(row), None), 0.0, x)[0]

    def scaled(x: Any) -> Any:
        return tr.scan(lambda c, row: (tr.sqrt(tr.abs(c * 0.5 + row)), None), tr.zeros(77), x)[0]

    x = tensor(np.random.default_rng(0).normal(size=(30, 77)))
    for f, form in ((added, "runs step by step: it must preserve the bits of single steps"), (scaled, NATIVE)):
        exact = tr.compile(f, deterministic=True)
        for _ in range(3):
            assert exact(x).numpy().tobytes() == f(x).numpy().tobytes()
            fusion.wait()
        assert exact.explain(x).form.startswith(form)


def test_sizes_that_depend_on_data_stay_steps() -> None:
    def f(x: Any) -> Any:
        kept = tr.truncate(x, tr.sum(x > 0))
        return tr.scan(lambda c, _: (c * 0.5, None), tr.sum(kept), None, length=3)[0]

    compiled = tr.compile(f)
    for _ in range(3):
        assert float(compiled(tensor([1.0, 2.0, -1.0]))) == 3 / 8
        fusion.wait()
    assert compiled.explain(tensor([1.0, 2.0, -1.0])).form == "runs step by step: it has sizes that depend on data"


@pytest.mark.background
def test_a_program_says_how_it_runs_before_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tensor([1.0, 2.0, -1.0])
    f = tr.compile(lambda x: tr.scan(lambda c, _: (tr.sin(c), None), x, None, length=3)[0])
    assert f.explain(x).form == "runs step by step at first, and as one native function when that is compiled"
    submitted: list[Any] = []
    monkeypatch.setattr(COMPILING, "submit", submitted.append)
    f(x), f(x)
    assert f.explain(x).form == "runs step by step while its native function is being compiled"
    for build in submitted:
        build()
    assert f.explain(x).form == NATIVE
    assert tr.compile(tr.sin).explain(x).form == ""


def test_threads_share_a_function() -> None:
    f = tr.compile(lambda x: tr.scan(lambda c, i: (tr.cos(c) + i, None), x, tr.arange(50.0))[0])
    xs = [tensor(np.full(100, float(k))) for k in range(4)]
    want = [f(x).numpy() for x in xs]
    wrong: list[int] = []

    def run(k: int) -> None:
        for _ in range(200):
            if f(xs[k]).numpy().tobytes() != want[k].tobytes():
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def endless(x: Any) -> Any:
    return tr.while_loop(lambda c: c[0] > -1.0, lambda c: (c[0] + 1.0, c[1] * 0.5), (x, x))[0]


def test_an_interrupt_ends_an_endless_loop() -> None:
    f = tr.compile(endless)
    with interrupt_after(0.5), pytest.raises(KeyboardInterrupt):
        f(tensor(0.0))
    with pytest.raises(TypeError):
        f(tensor("x"))


def test_an_interrupted_compiler_is_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenferro_runtime.lowering.native import _program

    def interrupted(name: str) -> Any:
        raise KeyboardInterrupt

    f, x = tr.compile(newton), tensor([4.0, 9.0])
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(_program, "get_backend", interrupted)
        f(x)
    np.testing.assert_allclose(f(x).numpy(), [2.0, 3.0])
    assert f.explain(x).form == NATIVE


def test_an_exception_inside_a_loop_names_the_line() -> None:
    from tenferro_tensor import REGISTRY, Primitive

    def _fussy(x: Spec) -> Spec:
        """A guest's operation that refuses large numbers."""
        return x

    fussy = Primitive(_fussy)
    seen: list[float] = []

    def kernel(x: Any) -> Any:
        seen.append(float(x[0]))
        if x[0] > 100:
            raise ArithmeticError("too large for me")
        return x + 1.0

    with REGISTRY.kernel(fussy, "cpu", lambda ins, outs: kernel):
        f = tr.compile(lambda x: tr.scan(lambda c, _: (fussy(c), None), x, None, length=1_000_000)[0])  # here
        with pytest.raises(ArithmeticError, match="too large") as caught:
            f(tensor([0.0, 1.0]))
        assert f.explain(tensor([0.0, 1.0])).form == NATIVE
    assert seen == [float(k) for k in range(102)]
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.endswith("# here"))
    assert any(f"test_whole_programs.py:{line}" in note for note in caught.value.__notes__)


def test_watched_programs_run_step_by_step() -> None:
    f = tr.compile(lambda x: tr.scan(lambda c, i: (tr.log(c - i), None), x, tr.arange(9.0))[0])
    x = tensor(np.ones(3))
    with np.errstate(all="ignore"):
        f(x), f(x)
    fusion.wait()
    found = f.find_nan(x)
    assert found is not None
    profiled = tr.compile(chosen).profile(tensor(1), x)
    assert profiled.steps


def test_what_is_not_used_any_more_is_freed() -> None:
    f: Any = tr.compile(lambda x: tr.scan(lambda c, i: (c + i, None), x, tr.arange(4.0))[0])
    x = tensor(np.ones(3))
    f(x), f(x)
    fusion.wait()
    program = f.program(x)
    held = [weakref.ref(form) for form in program.memo.get("native", {}).values()]
    assert f(x).numpy()[0] == 7.0
    del f, program
    gc.collect()
    assert all(ref() is None for ref in held)


PROGRAM = """
import numpy as np, tenferro_runtime as tr
from tenferro_runtime.running import fusion
from tenferro_tensor import tensor
f = tr.compile(lambda x: tr.scan(lambda c, i: (tr.cos(c * 1.25) + i, None), x, tr.arange(50.0))[0])
x = tensor(np.arange(5.0))
for _ in range(3):
    y = f(x).numpy()
    fusion.wait()
assert f.explain(x).form == "runs as one native function", f.explain(x).form
{more}
from tenferro_cpu.native import engine
print(engine().stats()["compiled"], y.tobytes().hex())
"""

FORKED = """
import os
child = os.fork()
if not child:
    os._exit(0 if f(x).numpy().tobytes() == y.tobytes() else 1)
assert os.waitpid(child, 0)[1] == 0
"""

PLAIN = """
import numpy as np, tenferro_runtime as tr
from tenferro_runtime.running import fusion
from tenferro_tensor import tensor
f = tr.compile(lambda x: tr.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1])
x = tensor(np.arange(5.0))
for _ in range(3):
    assert f(x).numpy()[1] == 512.0
    fusion.wait()
print(f.explain(x).form)
"""


def in_process(text: str, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", text]
    found = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_a_second_process_compiles_nothing(tmp_path: Any) -> None:
    environment = {"TENFERRO_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    first, second = (in_process(PROGRAM.format(more=""), **environment).split() for _ in range(2))
    assert int(first[0]) > 0 == int(second[0]) and first[1] == second[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes of this kind")
def test_a_child_of_a_fork_goes_on() -> None:
    in_process(PROGRAM.format(more=FORKED))


def test_without_machine_code_the_steps_serve() -> None:
    said = in_process(PLAIN, TENFERRO_CPU_JIT="0")
    assert said == "runs step by step: there is no machine code of programs here"


def test_a_run_frees_the_interpreter() -> None:
    f = tr.compile(lambda x: tr.scan(lambda c, _: (c * 0.5 + 1.0, None), x, None, length=20_000_000)[0])
    done = threading.Event()
    thread = threading.Thread(target=lambda: (f(tensor(1.0)), done.set()))
    thread.start()
    ticks = 0
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    thread.join()
    assert ticks > 1
