"""StableHLO modules as programs: those of JAX agree with JAX, those of tenferro with what they were made from."""

from functools import partial
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import tenferro_runtime as tr
from random_programs import Random, random_functions, same
from rule_cases import CASES
from tenferro_ad import grad, jvp
from tenferro_runtime.extension import Builder
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, UnsupportedError
from tenferro_xla import import_stablehlo, lower_to_stablehlo

RNG = np.random.default_rng(3)
A, B, V = RNG.normal(size=(4, 5)), RNG.normal(size=(5, 3)), RNG.normal(size=6)
P = np.eye(4) * 5 + RNG.normal(size=(4, 4))
PLACES = np.array([2, 0, 1, -1])


@pytest.fixture(autouse=True, scope="module")
def wide_numbers():
    with jax.enable_x64(True):
        yield


def recurrent(x, w):
    def step(c, a):
        c = jnp.tanh(c @ w + a)
        return c, c.sum()

    return jax.lax.scan(step, x, jnp.arange(15.0).reshape(5, 3) / 10, reverse=True)


def convolved(x, k):
    return jax.lax.conv_general_dilated(x, k, (2, 1), [(1, 2), (0, 1)], rhs_dilation=(1, 2), feature_group_count=2)


JAX_FUNCTIONS = {
    "softmax and logsumexp": (lambda x: jax.nn.softmax(x) * jax.nn.logsumexp(x, axis=0), A),
    "multilayer perceptron": (lambda x, w, v: jax.nn.gelu(jax.nn.silu(x @ w) @ v), A, B, RNG.normal(size=(3, 2))),
    "scan": (recurrent, A[0, :3], P[:3, :3] / 5),
    "fori_loop": (lambda x: jax.lax.fori_loop(1, 5, lambda i, c: c.at[i % 3].multiply(1.5) + i, x), A),
    "cumulative": (lambda x: jnp.cumsum(x, axis=1) * jnp.cumprod(x, axis=0) + jax.lax.cummax(x, 1), A),
    "sort and argsort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.sort(x, 1, descending=True)), A),
    "lexsort": (lambda x: x[0][jnp.lexsort((x[0], jnp.round(x[1])))], A),
    "convolution": (convolved, RNG.normal(size=(2, 4, 8, 9)), RNG.normal(size=(4, 2, 3, 2))),
    "pooling": (lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (3, 2), (2, 2), "SAME"), A),
    "einsum": (lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c), A, B, B.T),
    "indexing": (lambda x: x[PLACES][:, PLACES].at[PLACES].add(1.5).at[1].set(0.0), P),
    "batched indexing": (lambda x: jax.vmap(lambda a, j: a.at[j].add(a[j + 1]))(x, PLACES % 3), A),
    "cond and switch": (lambda x: jax.lax.cond(x[0] > 0, jnp.sin, lambda x: x * 2, x)
                        + jax.lax.switch(jnp.int32(x[1] * 100) % 3, [jnp.sin, jnp.cos, jnp.exp], x), V),
    "linear algebra": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.cholesky(a + a.T)), P, A),
    "spectra": (lambda a: (jnp.linalg.svd(a, compute_uv=False), jnp.linalg.eigvalsh(a)), P + P.T),
    "fft": (lambda x: (jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft2(jnp.fft.rfft2(x) ** 2, s=(4, 5))), A),
    "special": (lambda x: jax.scipy.special.erfinv(jnp.tanh(x)) + jax.scipy.special.digamma(x**2 + 0.1), A),
    "random": (lambda x: jax.random.normal(jax.random.key(3), (3, 4)) * x.sum(), A),
    "interpolation": (lambda x: jnp.interp(x, jnp.linspace(-2, 2, 7), jnp.arange(7.0) ** 2), A),
    "narrow": (lambda x: (x.astype(jnp.bfloat16) * jnp.bfloat16(1.5)).astype(jnp.float32), A),
    "integers": (lambda x: jax.lax.div(jnp.int32(x * 10), jnp.int32(-3)) + jnp.int32(x * 10) // 3 % 4, A),
}  # fmt: skip


@pytest.mark.parametrize("name", JAX_FUNCTIONS)
def test_functions_of_jax_and_their_gradients(name):
    f: Any
    f, *xs = JAX_FUNCTIONS[name]
    g = import_stablehlo(jax.jit(f).lower(*xs).as_text())

    def weighed(sum_, cos, results):
        return sum(sum_(cos(r)) for r in jax.tree.leaves(results) if r.dtype == np.float64)

    def both(*xs):
        leaves = jax.tree.leaves(f(*xs))
        return weighed(jnp.sum, jnp.cos, leaves) + 0.0, leaves

    wanted = jax.jit(
        jax.value_and_grad(both, argnums=tuple(range(len(xs))), has_aux=True),
        compiler_options={"xla_allow_excess_precision": False},
    )
    (_, values), slopes = wanted(*xs)
    got = g(*xs)
    for a, b in zip(got if isinstance(got, tuple) else (got,), values, strict=True):
        assert a.dtype.name == b.dtype.name
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-9)
    if not any(v.dtype == np.float64 for v in values):
        return
    own = grad(lambda *xs: weighed(tr.sum, tr.cos, g(*xs)), argnums=tuple(range(len(xs))))(*map(tr.asarray, xs))
    for a, b in zip(own, slopes, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-8, atol=1e-8)


def program_of(f, xs):
    b = Builder()
    out = f(*[b.input(tensor(x).spec) for x in xs])
    return b.close(list(out) if isinstance(out, tuple) else [out])


@pytest.mark.parametrize("case", [c for c in CASES if c.primitive.name not in ("searchsorted", "transfer")], ids=str)
def test_round_trips_of_the_catalog(case):
    for xs in (case.xs, case.zs):
        if xs is None:
            continue
        program = program_of(case.f, xs)
        again = import_stablehlo(lower_to_stablehlo(program)).program
        assert (again.inputs, again.outputs) == (program.inputs, program.outputs)
        tangents = [tensor(np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype)) for x in xs]
        values = [tensor(x) for x in xs]
        want, got = (jvp(lambda *v, p=p: p.run(*v), values, tangents) for p in (program, again))
        for w, g in zip([*want[0], *want[1]], [*got[0], *got[1]], strict=True):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-9, atol=1e-9)


@given(random_functions())
@settings(deadline=None, max_examples=10)
def test_round_trips_of_random_programs(function: Random):
    program = program_of(function, [np.asarray(t) for t in function.inputs])
    once = import_stablehlo(lower_to_stablehlo(program)).program
    twice = import_stablehlo(lower_to_stablehlo(once)).program
    want = program.run(*function.inputs)
    for again in (once, twice):
        for g, w in zip(again.run(*function.inputs), want, strict=True):
            same(g, w)


def module(*lines, arguments="%x: tensor<4xf64>", result="tensor<4xf64>", returns="%y"):
    body = "\n".join(lines)
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn {returns} : {result}\n}}"


def test_an_imported_function_is_compiled_and_batched():
    f = import_stablehlo(jax.jit(lambda x: jnp.cumsum(jnp.exp(x) * x)).lower(V).as_text())
    want = np.cumsum(np.exp(V) * V)
    np.testing.assert_allclose(np.asarray(tr.compile(f)(V)), want, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(tr.vmap(f)(tr.asarray(np.stack([V, V])))), [want, want], rtol=1e-12)
    slope = grad(lambda x: tr.sum(f(x)))
    np.testing.assert_allclose(np.asarray(tr.compile(slope)(V)), np.asarray(slope(tr.asarray(V))), rtol=1e-12)


def test_counted_loops_are_scans_and_other_loops_are_not():
    def steps(x):
        counted = jax.lax.fori_loop(0, 7, lambda i, c: (c[0] + c[1] * i, c[1]), (x, 2 * x))[0]
        return jax.lax.while_loop(lambda c: c.sum() < 50.0, lambda c: 2 * c, counted)

    program = import_stablehlo(jax.jit(steps).lower(np.ones(3)).as_text()).program
    names = [eq.op.primitive.name for eq in program.equations]
    assert [n for n in names if n in ("scan", "while_loop")] == ["scan", "while_loop"]
    (scan,) = [eq for eq in program.equations if eq.op.primitive.name == "scan"]
    assert (scan.op.params["length"], scan.op.params["carry"]) == (7, 1)  # nothing but the sum is carried
    np.testing.assert_array_equal(np.asarray(program.run(tensor(np.ones(3)))[0]), np.full(3, 43.0))


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 16), ("float32", 32), ("float64", 64)])
def test_bits_of_floats(dtype, bits):
    info = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, info.max, -info.tiny, info.smallest_subnormal, info.eps]
    x = np.concatenate([np.array(special, dtype), RNG.normal(size=20).astype(dtype), RNG.normal(size=9).astype(dtype)
                        * info.tiny])  # fmt: skip
    there, back = (
        f"%y = stablehlo.bitcast_convert %x : (tensor<{x.size}x{a}>) -> tensor<{x.size}x{b}>"
        for a, b in ((f"f{bits}", f"ui{bits}"), (f"ui{bits}", f"f{bits}"))
    )
    floats, integers = f"tensor<{x.size}xf{bits}>", f"tensor<{x.size}xui{bits}>"
    want = x.view(f"uint{bits}")
    read = import_stablehlo(module(there, arguments=f"%x: {floats}", result=integers))
    np.testing.assert_array_equal(np.asarray(read(x)), want)
    write = import_stablehlo(module(back, arguments=f"%x: {integers}", result=floats))
    np.testing.assert_array_equal(np.asarray(write(want)), x)
    np.testing.assert_array_equal(np.signbit(np.asarray(write(want)))[:6], np.signbit(x)[:6])


def test_numbers_in_total_order():
    x = np.array([-np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan])
    ranks = np.arange(8)
    for which, compare in (("LT", np.less), ("GE", np.greater_equal), ("EQ", np.equal), ("NE", np.not_equal)):
        line = f"%y = stablehlo.compare {which}, %x, %z, TOTALORDER : (tensor<64xf64>, tensor<64xf64>) -> tensor<64xi1>"
        f = import_stablehlo(module(line, arguments="%x: tensor<64xf64>, %z: tensor<64xf64>", result="tensor<64xi1>"))
        left, right = (np.ascontiguousarray(a).ravel() for a in np.meshgrid(x, x))
        i, j = (a.ravel() for a in np.meshgrid(ranks, ranks))
        np.testing.assert_array_equal(np.asarray(f(left, right)), compare(i, j))


def test_reductions_with_bodies_of_their_own():
    def reduced(body, dtype="i64", start="0"):
        return import_stablehlo(
            module(
                f"%s = stablehlo.constant dense<{start}> : tensor<{dtype}>",
                f'%y = "stablehlo.reduce"(%x, %s) ({{ ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):',
                *body,
                f'"stablehlo.return"(%r) : (tensor<{dtype}>) -> () }}) {{dimensions = array<i64: 0>}} : '
                f"(tensor<5x3x{dtype}>, tensor<{dtype}>) -> tensor<3x{dtype}>",
                arguments=f"%x: tensor<5x3x{dtype}>",
                result=f"tensor<3x{dtype}>",
            )
        )

    x = RNG.integers(0, 99, (5, 3))
    xor = reduced(["%r = stablehlo.xor %a, %b : tensor<i64>"])
    np.testing.assert_array_equal(np.asarray(xor(x)), np.bitwise_xor.reduce(x))
    started = reduced(["%r = stablehlo.maximum %b, %a : tensor<i64>"], start="60")
    np.testing.assert_array_equal(np.asarray(started(x)), np.maximum(x.max(0), 60))
    # Joining is associative, but the operands may not be exchanged.
    last = reduced(["%z = stablehlo.multiply %a, %b : tensor<f64>", "%o = stablehlo.subtract %z, %z : tensor<f64>",
                    "%r = stablehlo.add %b, %o : tensor<f64>"], "f64", "0.0")  # fmt: skip
    np.testing.assert_array_equal(np.asarray(last(x.astype(float))), x[-1])


def test_sorts_by_other_orders():
    def ordered(*lines):
        return import_stablehlo(
            module(
                '%y = "stablehlo.sort"(%x) ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>):', *lines,
                '"stablehlo.return"(%r) : (tensor<i1>) -> () }) {dimension = 0 : i64} : '
                "(tensor<4xf64>) -> tensor<4xf64>",
            )
        )  # fmt: skip

    x = np.array([3.0, -2.0, 0.5, -4.0])
    by_size = ordered(
        "%p = stablehlo.abs %a : tensor<f64>",
        "%q = stablehlo.abs %b : tensor<f64>",
        "%r = stablehlo.compare GT, %p, %q : (tensor<f64>, tensor<f64>) -> tensor<i1>",
    )
    np.testing.assert_array_equal(np.asarray(by_size(x)), [-4.0, 3.0, -2.0, 0.5])
    with pytest.raises(UnsupportedError, match=r"stablehlo.sort at .* its comparator is not a lexicographic"):
        ordered(
            "%p = stablehlo.abs %a : tensor<f64>",
            "%r = stablehlo.compare LT, %p, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>",
        )


def test_windows_by_doubling():
    x = RNG.normal(size=(7, 3))
    for size, stride, apart in ((1, 1, 1), (3, 1, 1), (3, 2, 2), (6, 1, 1), (7, 3, 1), (9, 1, 1)):
        f = partial(
            jax.lax.reduce_window, init_value=-np.inf, computation=jax.lax.max, window_dimensions=(size, 1),
            window_strides=(stride, 1), padding=[(1, 2), (0, 0)], window_dilation=(apart, 1),
        )  # fmt: skip
        padded = np.pad(x, [(1, 2), (0, 0)], constant_values=-np.inf)
        starts = range(0, max(0, 10 - (size - 1) * apart), stride)
        want = [padded[s : s + (size - 1) * apart + 1 : apart].max(0) for s in starts]
        got = import_stablehlo(jax.jit(f).lower(x).as_text())(x)
        np.testing.assert_array_equal(np.asarray(got), np.array(want).reshape(-1, 3))


def test_exported_functions_keep_their_containers():
    def f(pair, *, scale, unused):
        return {"sum": pair["a"] + pair["b"] * scale}

    exported = jax.export.export(jax.jit(f))({"a": V, "b": V}, scale=np.float64(2.0), unused=A)
    g = import_stablehlo(exported)
    assert len(g.program.inputs) == 3
    got = g({"a": tr.asarray(V), "b": V}, scale=3.0, unused=A)
    np.testing.assert_allclose(np.asarray(got["sum"]), 4 * V)
    with pytest.raises(ArgumentError, match="the function takes arguments"):
        g(V, scale=3.0, unused=A)
    by_position = import_stablehlo(exported.mlir_module_serialized)
    np.testing.assert_allclose(np.asarray(by_position(V, V, 3.0)), 4 * V)


def test_mistakes_are_named():
    with pytest.raises(UnsupportedError, match=r'stablehlo.rng_bit_generator at "-":2:\d+ cannot be imported'):
        import_stablehlo(
            module(
                "%s, %y = stablehlo.rng_bit_generator %x, algorithm = DEFAULT : "
                "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui64>)",
                arguments="%x: tensor<2xui64>", result="tensor<4xui64>",
            )
        )  # fmt: skip
    call = "%y = stablehlo.custom_call @lapack_dgeqrf_ffi(%x) : (tensor<4xf64>) -> tensor<4xf64>"
    with pytest.raises(UnsupportedError, match="it calls the library function lapack_dgeqrf_ffi; the supported"):
        import_stablehlo(module(call))
    open_ = module("%y = stablehlo.abs %x : tensor<?xf64>", arguments="%x: tensor<?xf64>", result="tensor<?xf64>")
    with pytest.raises(UnsupportedError, match=r"tensor<\?xf64> with dynamic sizes; export the function for fixed"):
        import_stablehlo(open_)
    narrow = module("%y = stablehlo.abs %x : tensor<4xf8E4M3FN>", arguments="%x: tensor<4xf8E4M3FN>",
                    result="tensor<4xf8E4M3FN>")  # fmt: skip
    with pytest.raises(UnsupportedError, match="which tenferro does not support; convert them to one of i1, f16, bf16"):
        import_stablehlo(narrow)
    same_ = module("%y = stablehlo.abs %x : tensor<4xf64>")
    with pytest.raises(ArgumentError, match="the module has no function 'other'; its functions are main"):
        import_stablehlo(same_, entry="other")
    with pytest.raises(ArgumentError, match="the module cannot be read as StableHLO: .*; pass the text or bytes"):
        import_stablehlo("no module")
    with pytest.raises(ArgumentError, match="takes positional arguments only, got x by name"):
        import_stablehlo(same_)(x=V[:4])
