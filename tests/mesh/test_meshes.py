"""Meshes, arrays that are split over them, and functions compiled for them, on 8 virtual devices."""

import numpy as np
import pytest

import tenferro_fft as tf
import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_ad import grad, variable
from tenferro_runtime.extension import (
    ArgumentError,
    AxisError,
    BackendUnavailableError,
    NumericalError,
    PlacementError,
    ShapeError,
)
from tenferro_xla.mesh import Mesh, P, PartitionSpec, ShardedArray, compile_on, psum, shard_map

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def mesh():
    return Mesh({"data": 4, "model": 2})


def same(sharded, expected, rtol=1e-12):
    np.testing.assert_allclose(np.asarray(sharded.gather()), np.asarray(expected), rtol=rtol, atol=1e-12)


def test_specs_compare_hash_and_print():
    assert P("data") == P("data", None) != P(None, "data")
    assert len({P("a", None), P("a"), P(("a",))}) == 1
    assert repr(P(("a", "b"), None)) == "P(('a', 'b'), None)"
    with pytest.raises(ArgumentError, match="names the mesh axis 'a' twice"):
        P("a", ("b", "a"))
    with pytest.raises(ArgumentError, match="an entry of a PartitionSpec is"):
        P(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
@pytest.mark.parametrize("spec", [P(), P("data"), P(None, "model"), P("model", "data"), P(("data", "model"))])
def test_shards_are_the_parts_and_gather_brings_them_back(mesh, dtype, spec):
    x = (RNG.normal(size=(8, 4)) * 5).astype(dtype)
    s = mesh.shard(x, spec)
    assert (s.shape, s.dtype, s.ndim, s.spec, len(s.shards)) == (x.shape, x.dtype, 2, spec, 8)
    for shard in s.shards:
        assert shard.data.shape == s.local_shape
        np.testing.assert_array_equal(np.asarray(shard.data), x[shard.index])
    replicas = sum(shard.replica == 0 for shard in s.shards)
    assert replicas * int(np.prod(s.local_shape)) == x.size
    np.testing.assert_array_equal(np.asarray(s.gather()), x)
    np.testing.assert_array_equal(np.asarray(s.reshard(P(None, "data")).gather()), x)


def test_a_sharded_array_has_memory_of_its_own(mesh):
    x = tr.asarray(np.zeros((8, 4)))
    s = mesh.shard(x, P("data"))
    x[...] = 1.0
    got = s.gather()
    got[...] = 2.0
    assert not np.asarray(s.gather()).any()


def test_a_function_of_the_index_makes_an_array(mesh):
    asked = []

    def part(index):
        asked.append(index)
        return np.add.outer(np.arange(8.0)[index[0]], 10 * np.arange(4.0)[index[1]])

    s = ShardedArray.from_callback(mesh, (8, 4), P("data", "model"), part)
    same(s, np.add.outer(np.arange(8.0), 10 * np.arange(4.0)))
    assert len(set(map(str, asked))) == 8
    with pytest.raises(ArgumentError, match=r"the part \[0:2, 0:2\] has shape \(2, 2\), but the function returned"):
        ShardedArray.from_callback(mesh, (8, 4), P("data", "model"), lambda index: np.zeros(3))


def test_another_mesh_of_fewer_devices(mesh):
    x = RNG.normal(size=(8, 4))
    small = Mesh({"half": 2}, mesh.devices.ravel()[4:6])
    moved = mesh.shard(x, P("data")).reshard(P("half"), small)
    assert moved.mesh == small and [s.device.id for s in moved.shards] == [4, 5]
    same(moved, x)
    with pytest.raises(PlacementError, match=r"is on another mesh than the function.*reshard\(spec, mesh\)"):
        compile_on(mesh, lambda x: x + 1)(moved)


def test_nothing_comes_to_main_memory_unasked(mesh):
    with pytest.raises(PlacementError, match=r"is on 8 devices.*use x.gather\(\)"):
        np.asarray(mesh.replicate(1.0))


def test_mistakes_are_named(mesh):
    with pytest.raises(ShapeError, match=r"axis 0 of the array has 6 elements, which is not divisible by the 4"):
        mesh.shard(np.zeros((6, 4)), P("data"))
    with pytest.raises(AxisError, match=r"names the mesh axis 'batch'.*the mesh has data=4, model=2"):
        mesh.shard(np.zeros((8, 4)), P("batch"))
    with pytest.raises(AxisError, match=r"has 2 entries.*but an array has 1 axes"):
        mesh.shard(np.zeros(8), P("data", None))
    with pytest.raises(BackendUnavailableError, match=r"needs 64 devices, but JAX has 8.*device_count=64"):
        Mesh({"data": 64})
    with pytest.raises(ArgumentError, match="a mesh is a Mesh, or sizes"):
        Mesh({"data": 0})
    with pytest.raises(ArgumentError, match="has 4 devices, got 2"):
        Mesh({"data": 4}, mesh.devices.ravel()[:2])


def test_a_chain_of_products_takes_an_eighth_of_the_memory_on_each_device(mesh):
    weights = [RNG.normal(size=(64, 64)) / 8 for _ in range(3)]
    x = RNG.normal(size=(128, 64))

    def chain(x, *ws):
        for w in ws:
            x = tr.tanh(x @ w)
        return x

    every = P(("data", "model"))
    f = compile_on(mesh, chain, (every, *[P()] * 3), every)
    single = Mesh({"data": 1})
    alone = compile_on(single, chain, P(), P())
    same(f(x, *weights), chain(tr.asarray(x), *map(tr.asarray, weights)))
    split, whole = f.executable(x, *weights).memory(), alone.executable(x, *weights).memory()
    assert split.results == whole.results // 8 == x.nbytes // 8
    assert split.arguments == x.nbytes // 8 + 3 * 64 * 64 * 8
    assert split.temporaries <= whole.temporaries // 8 + 1024
    assert f.executable(x, *weights).collectives() == {}


def test_gradients_of_data_and_tensor_parallel_functions(mesh):
    x, y = RNG.normal(size=(16, 6)), RNG.normal(size=(16, 2))
    params = {"v": RNG.normal(size=(6, 8)), "w": RNG.normal(size=(8, 2))}

    def loss(params, x, y):
        return tr.mean((tr.tanh(x @ params["v"]) @ params["w"] - y) ** 2)

    expected = grad(loss)({k: tr.asarray(p) for k, p in params.items()}, x, y)
    for split in ({"v": P(), "w": P()}, {"v": P(None, "model"), "w": P("model")}):
        f = compile_on(mesh, grad(loss), (split, P("data"), P("data")), split)
        found = f(params, x, y)
        assert {k: s.spec for k, s in found.items()} == split
        for k in params:
            same(found[k], expected[k])
        assert f.executable(params, x, y).collectives()["all-reduce"] >= 1
        assert "all-reduce" in f.explain(params, x, y)
        again = f(found, x, y)  # results are arguments: nothing leaves the devices
        assert f.executables.stats()["size"] == 1 and isinstance(again["v"], ShardedArray)


def test_batches_of_decompositions_stay_split(mesh):
    x = RNG.normal(size=(16, 6, 4))
    every = P(("data", "model"))
    f = compile_on(mesh, tl.svdvals, every, every)
    same(f(x), np.linalg.svd(x, compute_uv=False))
    assert "all-gather" not in f.executable(x).collectives()


def test_transforms_to_frequencies(mesh):
    x = RNG.normal(size=(16, 6))
    same(compile_on(mesh, tf.fft, P("data"), P("data"))(x), np.fft.fft(x))


def test_maps_over_lanes_and_loops(mesh):
    x = RNG.normal(size=(8, 5))

    def f(x):
        return tr.fori_loop(0, 3, lambda i, c: tr.sin(c) + x, x)

    expected = np.asarray(tr.vmap(f)(tr.asarray(x)))
    same(compile_on(mesh, tr.vmap(f), P("data"), P("data"))(x), expected)


def test_results_that_xla_places_and_arguments_that_are_given_away(mesh):
    f = compile_on(mesh, lambda x, y: (x + y, tr.sum(x)), donate=0)
    x = mesh.shard(np.ones((8, 4)), P("data", "model"))
    y = mesh.shard(np.ones((8, 4)), P("data", "model"))
    executable = f.executable(x, y)
    total, count = f(x, y)
    assert total.spec == P("data", "model") and count.spec == P()
    assert executable.memory().donated == 8 * 4 * 8 // 8
    assert x.array.is_deleted() and not y.array.is_deleted()


def test_failures_are_reported(mesh):
    f = compile_on(mesh, tl.inv, P("data"))
    x = np.broadcast_to(np.eye(3), (8, 3, 3)).copy()
    same(f(x), x)
    x[6] = 0
    with pytest.raises(NumericalError, match="inv.*singular"):
        f(x)


def test_functions_on_a_mesh_refuse_what_they_cannot_take(mesh):
    f = compile_on(mesh, lambda x: x * 2, P("data"))
    with pytest.raises(PlacementError, match=r"compile_on\(mesh, grad\(f\)\)"):
        f(variable(np.ones(8)))
    with pytest.raises(ShapeError, match=r"axis 0 of argument 0, float64\[6\], has 6 elements"):
        f(np.ones(6))
    with pytest.raises(ArgumentError, match="in_specs has 2 entries"):
        compile_on(mesh, lambda x: x, (P(), P()))(1.0)
    with pytest.raises(ArgumentError, match="in_specs holds PartitionSpecs or None, got 'data'"):
        compile_on(mesh, lambda x: x, "data")(1.0)
    with pytest.raises(ArgumentError, match=r"args\[0\] is a str"):
        f("x")
    with pytest.raises(ArgumentError, match="split as P"):
        f.executable(np.ones(8))(mesh.replicate(np.ones(8)))


def test_specs_go_into_files_by_pickle():
    import pickle

    assert pickle.loads(pickle.dumps(P("a", ("b", "c")))) == PartitionSpec("a", ("b", "c"))


def test_many_calls_in_a_row_and_at_a_time_do_not_wait_for_each_other(mesh):
    """XLA ends the process where the exchanges of two runs take each other's threads."""
    from concurrent.futures import ThreadPoolExecutor

    f = compile_on(mesh, lambda x: tr.sum(tr.sin(x)), P("data", "model"))
    x = mesh.shard(np.ones((8, 4)), P("data", "model"))
    expected = float(f(x).gather())
    with ThreadPoolExecutor(2) as pool:
        found = [y for ys in pool.map(lambda _: [f(x) for _ in range(40)], range(2)) for y in ys]
    assert {float(y.gather()) for y in found} == {expected}


def test_compiled_functions_run_on_a_mesh_of_cpu_devices(mesh):
    weights = tr.asarray(RNG.normal(size=(4, 6)))

    def one(x, w):
        return psum(tr.sum(tr.tanh(x @ w) ** 2), ("data", "model"))

    f = shard_map(one, mesh, (P("data"), P(None, "model")), P())
    compiled = tr.compile(f, backend=mesh)
    for n in (8, 12):
        x = tr.asarray(RNG.normal(size=(n, 4)))
        assert float(compiled(x, weights)) == pytest.approx(float(f(x, weights)), rel=1e-13)
        got, want = (grad(g, argnums=1)(x, weights) for g in (compiled, f))
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-11, atol=1e-13)
    assert "a mesh of data=4, model=2" in str(compiled.explain(x, weights))
    with pytest.raises(NumericalError, match="inv.*singular"):
        tr.compile(tl.inv, backend=mesh)(tr.zeros((2, 2)))
    with pytest.raises(PlacementError, match=r"use compile_on\(mesh, f\)"):
        tr.compile(lambda x: x + 1, backend=mesh)(tr.asarray([1.0], device="xla:cpu:0"))
