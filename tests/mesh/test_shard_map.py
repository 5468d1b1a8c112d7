"""Functions of one device on a mesh: against NumPy, on XLA against the lanes of a batch, and their derivatives."""

import itertools

import jax
import numpy as np
import pytest

import tenferro_fft as tf
import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, jvp, vjp
from tenferro_runtime.extension import ArgumentError, AxisError, NumericalError, ShapeError, UnsupportedError
from tenferro_xla.mesh import (
    Mesh,
    P,
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    compile_on,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    reduce_scatter,
    shard_map,
    with_sharding,
)

RNG = np.random.default_rng(1)
AXES = {"data": 4, "model": 2}


@pytest.fixture(scope="module")
def mesh():
    return Mesh(AXES)


def everywhere(mesh, f, *args):
    """The result of a function as lanes of a batch and on the devices of a mesh, which agree."""
    plain = np.asarray(f(*map(tr.asarray, args)))
    on_mesh = np.asarray(compile_on(mesh, f)(*args).gather())
    np.testing.assert_allclose(on_mesh, plain, rtol=1e-12, atol=1e-12)
    assert on_mesh.dtype == plain.dtype
    return plain


PERM = [(0, 1), (1, 3), (3, 0)]


def parts(x, axis=0):
    """The parts along `axis` for each index (data, model), when it is split along both."""
    pieces = np.split(x, 8, axis)
    return {(i, j): pieces[2 * i + j] for i, j in itertools.product(range(4), range(2))}


def joined(found, axis=0):
    return np.concatenate([found[i, j] for i, j in itertools.product(range(4), range(2))], axis)


COLLECTIVES = {
    "psum data": (lambda x: psum(x, "data"), lambda p, i, j: sum(p[k, j] for k in range(4))),
    "psum both": (lambda x: psum(x, ("model", "data")), lambda p, i, j: sum(p.values())),
    "pmean": (lambda x: pmean(x, "model"), lambda p, i, j: (p[i, 0] + p[i, 1]) / 2),
    "pmax": (lambda x: pmax(x, "data"), lambda p, i, j: np.max([p[k, j] for k in range(4)], 0)),
    "pmin": (lambda x: pmin(x, "model"), lambda p, i, j: np.min([p[i, k] for k in range(2)], 0)),
    "all_gather": (
        lambda x: all_gather(x, "data", 1)[:, :4],
        lambda p, i, j: np.concatenate([p[k, j] for k in range(4)], 1)[:, :4],
    ),
    "all_gather both": (
        lambda x: all_gather(x, ("model", "data"))[6:8],
        lambda p, i, j: np.concatenate([p[k, m] for m in range(2) for k in range(4)])[6:8],
    ),
    "reduce_scatter": (
        lambda x: tr.concat([reduce_scatter(x, "data", 1)] * 4, axis=1),
        lambda p, i, j: np.tile(sum(p[k, j] for k in range(4))[:, i : i + 1], (1, 4)),
    ),
    "ppermute": (
        lambda x: ppermute(x, "data", PERM),
        lambda p, i, j: next((p[a, j] for a, b in PERM if b == i), np.zeros((2, 4))),
    ),
    "ppermute both": (
        lambda x: ppermute(x, ("model", "data"), [(0, 5), (5, 2)]),
        lambda p, i, j: {(1, 1): p[0, 0], (2, 0): p[1, 1]}.get((i, j), np.zeros((2, 4))),
    ),
    "all_to_all": (
        lambda x: tr.reshape(all_to_all(x, "data", 1, 0), (2, 4)),
        lambda p, i, j: np.concatenate([p[k, j][:, i : i + 1] for k in range(4)]).reshape(2, 4),
    ),
    "axis_index": (
        lambda x: x + axis_index(("model", "data")) + 10 * axis_size("data"),
        lambda p, i, j: p[i, j] + 4 * j + i + 40,
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_exchanges_are_those_of_numpy(mesh, name):
    f, expected = COLLECTIVES[name]
    x = RNG.normal(size=(16, 4))
    every = P(("data", "model"))
    found = everywhere(mesh, shard_map(f, AXES, every, every), x)
    pieces = parts(x)
    np.testing.assert_allclose(found, joined({at: expected(pieces, *at) for at in pieces}), rtol=1e-12)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_exchanges_have_derivatives(name):
    f, _ = COLLECTIVES[name]
    every = P(("data", "model"))
    g = shard_map(lambda x: tr.sin(f(x)) * x, AXES, every, every)
    real = RNG.normal(size=(16, 4))
    order = 2 if name in ("psum data", "pmax", "all_to_all") else 1
    check_grads(lambda x: tr.sum(g(x) ** 2), (tr.asarray(real),), order=order)
    if name not in ("pmax", "pmin"):  # complex numbers have no order
        z = tr.asarray(real + 1j * RNG.normal(size=(16, 4)))
        check_grads(lambda z: tr.sum(tr.real(g(z) ** 2)), (z,), order=1)


def test_derivatives_on_devices_are_those_of_the_lanes(mesh):
    every = P(("data", "model"))

    def f(x):
        y = x
        for each, _ in COLLECTIVES.values():
            y = tr.sin(each(y)) + x
        return psum(tr.sum(y * y), ("data", "model"))

    everywhere(mesh, grad(shard_map(f, AXES, every, P())), RNG.normal(size=(16, 4)))


def test_replicated_operands_and_results_have_the_gradient_of_the_whole_function(mesh):
    x, w, v = RNG.normal(size=(8, 4)), RNG.normal(size=(4, 6)), RNG.normal(size=(6, 3))
    shift = tr.asarray(RNG.normal(size=3))

    def one(x, w, v):
        y = psum(tr.tanh(x @ w) @ v, "model") + shift
        return pmean(tr.mean(y**2), "data"), psum(y, "data")

    def whole(x, w, v):
        y = tr.tanh(x @ w) @ v + shift
        return tr.mean(y**2), tr.sum(tr.reshape(y, (4, 2, 3)), axis=0)

    specs = (P("data"), P(None, "model"), P("model"))
    mapped = shard_map(one, AXES, specs, (P(), P()))
    args = tuple(map(tr.asarray, (x, w, v)))

    def loss(f):
        return lambda *args: f(*args)[0] + tr.sum(tr.sin(f(*args)[1]))

    for k in range(3):
        expected = np.asarray(grad(loss(whole), argnums=k)(*args))
        np.testing.assert_allclose(np.asarray(grad(loss(mapped), argnums=k)(*args)), expected, rtol=1e-10, atol=1e-12)
        found = compile_on(mesh, grad(loss(mapped), argnums=k), specs, specs[k])(*args)
        np.testing.assert_allclose(np.asarray(found.gather()), expected, rtol=1e-10, atol=1e-12)
    tangents = tuple(tr.cos(a) for a in args)
    for found, expected in zip(jvp(mapped, args, tangents)[1], jvp(whole, args, tangents)[1], strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)
    check_grads(loss(mapped), args, order=2)


def test_values_from_outside_are_replicated_and_have_gradients():
    x = tr.asarray(RNG.normal(size=8))

    def f(w):
        return shard_map(lambda x: psum(tr.sum(x * w), "data"), AXES, P("data"), P())(x)

    np.testing.assert_allclose(float(grad(f)(tr.asarray(2.0))), float(tr.sum(x)), rtol=1e-12)
    check_grads(lambda w: tr.sin(f(w * w)), (tr.asarray(0.3),), order=2)


def test_a_backward_pass_exchanges_no_more_than_it_needs(mesh):
    """One sum over "model" for the loss, one for the slope of x, and one over "data" for both weights."""
    x, w, v = RNG.normal(size=(8, 4)), RNG.normal(size=(4, 6)), RNG.normal(size=(6, 3))
    specs = (P("data"), P(None, "model"), P("model"))

    def one(x, w, v):
        return psum(tr.sum(psum(tr.tanh(x @ w) @ v, "model") ** 2), "data")

    f = compile_on(mesh, grad(shard_map(one, AXES, specs, P()), argnums=(0, 1, 2)), specs, specs)
    assert f.executable(x, w, v).collectives() == {"all-reduce": 3}


def test_sums_of_what_does_not_differ_are_products(mesh):
    def f(x):
        return psum(tr.sin(x), ("data", "model")) + psum(1.5, "data")

    mapped = shard_map(f, AXES, P("data"), P())
    x = RNG.normal(size=8)
    found = everywhere(mesh, mapped, x)
    np.testing.assert_allclose(found, 2 * np.sin(x).reshape(4, 2).sum(0) + 6.0, rtol=1e-12)
    compiled = compile_on(mesh, mapped, P("data"))
    assert compiled.executable(x).collectives() == {"all-reduce": 1}
    assert "{{0,2,4,6},{1,3,5,7}}" in compiled.executable(x).hlo()  # along "data" alone
    np.testing.assert_allclose(everywhere(mesh, grad(lambda x: tr.sum(mapped(x))), x), 2 * np.cos(x), rtol=1e-12)


def test_gradients_inside_are_of_the_sum_over_devices(mesh):
    """Also where the result is exchanged: each device's operand is a variable of its own."""
    x = RNG.normal(size=8)
    every = P(("data", "model"))

    def f(x):
        return grad(lambda y: tr.sum(psum(y, "data") ** 3))(x)

    sums = x.reshape(4, 2).sum(0)
    np.testing.assert_allclose(
        everywhere(mesh, shard_map(f, AXES, every, every), x), np.tile(4 * 3 * sums**2, 4), rtol=1e-12
    )

    def train(w, x):
        return pmean(grad(lambda w: tr.mean((x - w) ** 2))(w), "data")

    w = RNG.normal(size=2)
    found = everywhere(mesh, shard_map(train, AXES, (P(), P("data")), P()), w, x.reshape(4, 2))
    np.testing.assert_allclose(found, (w - x.reshape(4, 2)).mean(0), rtol=1e-12)


def test_lanes_inside_and_outside(mesh):
    x, w = RNG.normal(size=(3, 8, 4)), RNG.normal(size=(5, 4))

    def one(x, w):
        return psum(x @ w, "data"), all_gather(x, "model", 1)

    f = shard_map(one, AXES, (P("data", "model"), P("model")), (P("model"), P("data")))
    g = tr.vmap(tr.vmap(f, in_axes=(None, 0)), in_axes=(0, None), out_axes=(1, 0))
    expected = [[f(tr.asarray(a), tr.asarray(b)) for a in x] for b in w]
    for k in range(2):
        found = everywhere(mesh, lambda x, w, k=k: g(x, w)[k], x, w)
        whole = np.asarray([[np.asarray(e[k]) for e in row] for row in expected])
        np.testing.assert_allclose(found, whole if k == 0 else whole.swapaxes(0, 1), rtol=1e-12)

    def within(x):
        return tr.vmap(lambda row: psum(row, "data") + axis_index("model"))(x)

    found = everywhere(mesh, shard_map(within, AXES, P(None, "data"), P(None, "model")), x)
    total = x.reshape(3, 4, 2, 4).sum(1)
    np.testing.assert_allclose(found, np.concatenate([total, total + 1], 1), rtol=1e-12)
    check_grads(lambda x: tr.sum(tr.sin(tr.vmap(f, in_axes=(0, None))(x, w[0])[0])), (tr.asarray(x),), order=1)


def test_loops_and_branches_with_exchanges(mesh):
    x = RNG.normal(size=(8, 3))

    def f(x):
        def step(c, k):
            right = ppermute(c, "data", [(i, (i + 1) % 4) for i in range(4)])
            c = tr.cond(k % 2 == 0, lambda c: tr.sin(c) + right, lambda c: c * pmean(right, "model"), c)
            return c, psum(tr.sum(c), ("data", "model"))

        return tr.scan(step, x, tr.arange(5))

    mapped = shard_map(f, AXES, P(("data", "model")), (P(("data", "model")), P()))
    everywhere(mesh, lambda x: mapped(x)[0], x)
    everywhere(mesh, grad(lambda x: tr.sum(mapped(x)[1] ** 2) + tr.sum(mapped(x)[0])), x)
    check_grads(lambda x: tr.sum(mapped(x)[1]), (tr.asarray(x),), order=1)

    def while_(x):
        return tr.while_loop(lambda c: psum(tr.sum(c), ("data", "model")) < 100, lambda c: 2 * c + 1, tr.abs(x))

    everywhere(mesh, shard_map(while_, AXES, P(("data", "model")), P(("data", "model"))), x)


def test_what_differs_between_devices_is_not_called_replicated():
    x = tr.ones(8)
    for f, out in (
        (lambda x: x[:1], P()),
        (lambda x: psum(x, "model"), P()),
        (lambda x: axis_index("data") + 0 * psum(tr.sum(x), "data"), P()),
        (lambda x: tr.fori_loop(0, 2, lambda i, c: c + x[0], tr.asarray(0.0)), P()),
        (lambda x: tr.cond(x[0] > 0, lambda: tr.asarray(1.0), lambda: tr.asarray(2.0)), P()),
        (lambda x: ppermute(psum(x, "data"), "data", [(0, 1)]), P()),
    ):
        with pytest.raises(ArgumentError, match=r"result 0 of a function passed to shard_map may differ.*along 'data'"):
            shard_map(f, AXES, P("data"), out)(x)
    with pytest.raises(ArgumentError, match="'model'"):
        shard_map(lambda x: psum(x, "data"), AXES, P(("data", "model")), P())(x)


def test_exchanges_that_only_some_devices_would_join_are_refused():
    x = tr.ones(8)
    with pytest.raises(UnsupportedError, match="devices along data may take differently"):
        shard_map(lambda x: tr.cond(x[0] > 0, lambda x: psum(x, "data"), lambda x: x, x), AXES, P("data"), P("data"))(x)
    with pytest.raises(UnsupportedError, match="with psum or pmax"):
        shard_map(
            lambda x: tr.while_loop(lambda c: c[0] < 9, lambda c: c + psum(c, "data"), x), AXES, P("data"), P("data")
        )(x)


def test_mistakes_are_named(mesh):
    x = tr.ones(8)
    with pytest.raises(ArgumentError, match="psum is called.*outside a function passed to shard_map"):
        psum(x, "data")
    with pytest.raises(AxisError, match="psum names the mesh axis 'rows'"):
        shard_map(lambda x: psum(x, "rows"), AXES, P(), P())(x)
    with pytest.raises(ShapeError, match=r"axis 0 of args\[0\], float64\[6\], has 6 elements"):
        shard_map(lambda x: x, AXES, P("data"), P("data"))(tr.ones(6))
    with pytest.raises(ShapeError, match="not a multiple of 4; pad it"):
        shard_map(lambda x: reduce_scatter(x, "data"), AXES, P(), P("data"))(tr.ones(6))
    with pytest.raises(ArgumentError, match=r"perm of ppermute has the targets \[1, 1\]"):
        shard_map(lambda x: ppermute(x, "data", [(0, 1), (2, 1)]), AXES, P(), P("data"))(x)
    with pytest.raises(ArgumentError, match="inside a function passed to shard_map"):
        shard_map(lambda x: shard_map(lambda y: y, AXES, P(), P())(x), AXES, P(), P())(x)
    with pytest.raises(ArgumentError, match="with_sharding is called.*inside a function passed to shard_map"):
        shard_map(lambda x: with_sharding(x, P("data")), AXES, P(), P())(x)
    with pytest.raises(ArgumentError, match="shard_map takes a function, got 3"):
        shard_map(3, AXES, P(), P())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"split by a PartitionSpec, for example P\('data', None\), got 'data'"):
        with_sharding(x, "data")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="has a shard_map on data=8, but is compiled for data=4, model=2"):
        compile_on(mesh, shard_map(lambda x: x, {"data": 8}, P("data"), P("data")))(np.ones(8))


def test_steps_that_fail_on_one_device_are_reported(mesh):
    f = compile_on(mesh, shard_map(tl.inv, AXES, P(("data", "model")), P(("data", "model"))))
    x = np.broadcast_to(np.eye(3), (8, 3, 3)).copy()
    np.testing.assert_array_equal(np.asarray(f(x).gather()), x)
    x[5] = 0
    with pytest.raises(NumericalError, match="inv.*singular"):
        f(x)


def test_batches_of_transforms_and_decompositions_stay_where_they_are(mesh):
    x = RNG.normal(size=(16, 6, 4))
    every = P(("data", "model"))
    f = compile_on(mesh, shard_map(lambda x: (tr.abs(tf.fft(x)), tl.svdvals(x)), mesh, every, every))
    spectra, values = f(x)
    np.testing.assert_allclose(np.asarray(spectra.gather()), np.abs(np.fft.fft(x)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.asarray(values.gather()), np.linalg.svd(x, compute_uv=False), rtol=1e-12)
    assert "all-gather" not in f.executable(x).collectives()


def test_a_constraint_splits_a_value_and_changes_nothing_else(mesh):
    x = RNG.normal(size=(8, 8))

    def f(x):
        return tr.sin(with_sharding(x @ x, P("data", "model"))) * 2

    np.testing.assert_allclose(everywhere(mesh, f, x), 2 * np.sin(x @ x), rtol=1e-12)
    g = compile_on(mesh, f)
    assert g(x).spec == P("data", "model") and compile_on(mesh, lambda x: tr.sin(x @ x) * 2)(x).spec == P()
    everywhere(mesh, grad(lambda x: tr.sum(f(x) ** 2)), x)
    everywhere(mesh, tr.vmap(f), RNG.normal(size=(3, 8, 8)))
    check_grads(f, (tr.asarray(x),), order=2)
    with pytest.raises(AxisError, match="with_sharding names the mesh axis 'rows'"):
        compile_on(mesh, lambda x: with_sharding(x, P("rows")))(x)


def test_programs_with_devices_are_compiled_for_the_cpu_and_kept_in_files(tmp_path):
    x = tr.asarray(RNG.normal(size=(8, 3)))
    f = shard_map(lambda x: psum(tr.sin(x), "data"), AXES, P("data"), P())
    compiled = tr.compile(lambda x: with_sharding(f(x), P()))
    np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(f(x)), rtol=1e-12)
    compiled.save(tmp_path / "f.tfp", x)
    np.testing.assert_allclose(np.asarray(tr.load(tmp_path / "f.tfp")(x)), np.asarray(f(x)), rtol=1e-12)


def test_values_on_another_device_stay_there(mesh):
    x = tr.asarray(RNG.normal(size=(8, 3)))
    f = shard_map(lambda x: psum(tr.sin(x), "data") + axis_index("model") * 0, AXES, P("data"), P(None, None))
    g = shard_map(lambda x: psum(tr.sin(x), "data") + pmax(axis_index("model"), "model"), AXES, P("data"), P())
    with pytest.raises(ArgumentError, match="'model'"):
        f(x)
    there = grad(lambda x: tr.sum(g(x) ** 2))(x.to_device("xla:cpu:0"))
    assert str(there.device) == "xla:cpu:0"
    np.testing.assert_allclose(
        np.asarray(there.to_device("cpu:0")), np.asarray(grad(lambda x: tr.sum(g(x) ** 2))(x)), rtol=1e-12
    )


def test_vjp_of_a_program_of_one_device_releases_what_it_kept():
    x = tr.asarray(RNG.normal(size=8))
    f = shard_map(lambda x: tr.sin(x) * psum(x, "data"), AXES, P("data"), P("data"))
    _, pull = vjp(f, x)
    (g,) = pull(tr.ones(8))
    total = np.asarray(x).reshape(4, 2).sum(0)
    s, c = np.sin(np.asarray(x)).reshape(4, 2), np.cos(np.asarray(x)).reshape(4, 2)
    np.testing.assert_allclose(np.asarray(g), (c * total + s.sum(0)).ravel(), rtol=1e-12)


@pytest.mark.parametrize("axes", [{"data": 1}, {"data": 1, "model": 1}], ids=["one axis", "two axes"])
def test_one_device_is_a_mesh_too(axes):
    """A program for n processes runs on one: the same values, gradients, loops, failures and mistakes."""
    mesh, every, x = Mesh(axes, jax.devices()[:1]), tuple(axes), RNG.normal(size=(6, 4))

    def exchanged(x):
        y = psum(x, every) + pmean(x, "data") * pmax(x, every) - pmin(x, "data")
        y = y + all_gather(x, "data", 1) * reduce_scatter(x, every) + ppermute(x, every, [(0, 0)])
        return y + tr.reshape(all_to_all(x, "data", 1, 0), x.shape) + ppermute(x, "data", []) + axis_index(every)

    def looped(x):
        def step(c, k):
            c = tr.cond(k % 2 == 0, lambda c: tr.sin(c) + psum(c, every), lambda c: c * pmean(c, "data"), c)
            return c, psum(tr.sum(c), every)

        return tr.scan(step, x, tr.arange(5))[0]

    for f in (exchanged, looped):
        mapped = shard_map(f, axes, P(every), P(every))
        everywhere(mesh, mapped, x)
        everywhere(mesh, grad(lambda x, mapped=mapped: tr.sum(mapped(x) ** 2)), x)
        everywhere(mesh, tr.vmap(mapped), np.stack([x, 2 * x]))
        np.testing.assert_allclose(np.asarray(tr.compile(mapped, backend=mesh)(x)), np.asarray(mapped(tr.asarray(x))))
    everywhere(mesh, lambda x: tr.sin(with_sharding(x @ x.T, P("data"))), x)
    total = compile_on(mesh, shard_map(lambda x: psum(x, every), axes, P(every), P()), P("data"), P())
    assert total(x).spec == P() and total(x).shape == (6, 4)
    with pytest.raises(NumericalError, match="inv.*singular"):
        compile_on(mesh, shard_map(tl.inv, axes, P(every), P(every)))(np.zeros((2, 3, 3)))
    with pytest.raises(ArgumentError, match="has a shard_map on rows=1, but is compiled for data=1"):
        compile_on(mesh, shard_map(lambda x: x, {"rows": 1}, P("rows"), P("rows")))(x)
