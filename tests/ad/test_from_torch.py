"""Functions of PyTorch as differentiable operations, eager and in programs."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, hessian, jacfwd, jvp, vjp
from tenferro_tensor_core import ArgumentError

torch = pytest.importorskip("torch")
adapter = pytest.importorskip("tenferro_ad.adapters.torch")
as_torch, from_torch = adapter.as_torch, adapter.from_torch

# PyTorch compiles parts of its own in forward mode, by functions that it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

RNG = np.random.default_rng(3)
X, Y = tr.asarray(RNG.normal(size=(3, 2))), tr.asarray(RNG.normal(size=(2, 3)))
Z = tr.asarray(RNG.normal(size=3) + 1j * RNG.normal(size=3))


def close(a, b):
    assert np.allclose(np.asarray(a), np.asarray(b), rtol=1e-10)


@from_torch
def product(x, y):
    return torch.sin(x) @ y


def native(x, y):
    return tr.sin(x) @ y


def test_values_and_derivatives_in_every_mode():
    close(product(X, Y), native(X, Y))
    check_grads(product, (X, Y), order=2)
    close(vjp(product, X, Y)[1](tr.ones((3, 3)))[1], vjp(native, X, Y)[1](tr.ones((3, 3)))[1])
    close(jvp(product, (X, Y), (X, Y))[1], jvp(native, (X, Y), (X, Y))[1])
    for transform in (hessian, lambda f: jacfwd(grad(f)), lambda f: grad(lambda x: tr.sum(grad(f)(x) ** 2))):
        f, g = (transform(lambda x, h=h: tr.sum(h(x, Y) ** 2)) for h in (product, native))
        close(f(X), g(X))
        close(tr.compile(f)(X), g(X))


def test_complex_derivatives_follow_the_convention():
    f = from_torch(lambda z: torch.sum(torch.abs(z) ** 2))
    close(grad(f)(Z), 2 * Z)
    check_grads(from_torch(lambda z: z * z.conj() * z), (Z,), order=2)


@pytest.mark.parametrize("method", ["vmap", "sequential"])
def test_batches(method):
    f = from_torch(lambda x, y: torch.sin(x) * y, vmap_method=method)
    g = lambda x, y: tr.sin(x) * y
    both = tr.asarray(RNG.normal(size=(4, 3)))
    for axes in ((0, 0), (0, None), (None, 0)):
        xs = [both if a == 0 else both[1] for a in axes]
        close(tr.vmap(f, axes)(*xs), tr.vmap(g, axes)(*xs))
        close(tr.compile(tr.vmap(f, axes))(*xs), tr.vmap(g, axes)(*xs))
        slopes = [tr.vmap(grad(lambda x, y, h=h: tr.sum(h(x, y) ** 2)), axes)(*xs) for h in (f, g)]
        close(*slopes)
        through = [grad(lambda x, y, h=h, axes=axes: tr.sum(tr.vmap(h, axes)(x, y) ** 2), (0, 1))(*xs) for h in (f, g)]
        close(through[0][1], through[1][1])
    twice = tr.vmap(tr.vmap(f, (0, None)), (None, 0))
    close(twice(both, both), tr.vmap(tr.vmap(g, (0, None)), (None, 0))(both, both))


def test_one_step_of_a_program_that_shares_memory():
    places = []

    def noted(x):
        places.append(x.data_ptr())
        return x * 2

    f = tr.compile(from_torch(noted, infer=lambda x: x))
    x = tr.asarray(np.ones(1000))
    assert f(x).shape == (1000,)
    assert places == [x.data.__array_interface__["data"][0]]
    assert len(f.program(x).equations) == 1
    made = []
    y = from_torch(lambda x: made.append(x * 2) or made.pop())(x)
    assert y.data.base is not None  # the memory of PyTorch, and no copy


def test_results_that_others_hold_are_copied():
    held = torch.zeros(3)
    f = from_torch(lambda x: (x, held, held[1:], x[1:], held.detach()))
    before = tr.asarray(np.arange(3.0))
    outs = f(before)
    held += 7
    assert [y.tolist() for y in outs] == [[0, 1, 2], [0, 0, 0], [0, 0], [1, 2], [0, 0, 0]]
    assert f(before)[1].tolist() == [7, 7, 7]  # constants are read in each run


def test_containers_constants_and_modules():
    module = torch.nn.Linear(2, 1, dtype=torch.float64)

    @from_torch
    def loss(parameters, batch, *, power):
        found = torch.func.functional_call(module, parameters, (batch["x"],))
        return {"loss": ((found - batch["y"]) ** power).sum(), "count": torch.tensor(found.shape[0])}

    parameters = {k: tr.from_dlpack(v.detach()) for k, v in module.named_parameters()}
    batch = {"x": X, "y": tr.ones((3, 1))}
    slopes = tr.compile(grad(lambda p: loss(p, batch, power=2)["loss"]))(parameters)
    residual = X @ parameters["weight"].T + parameters["bias"] - 1
    close(slopes["weight"], 2 * residual.T @ X)
    assert loss(parameters, batch, power=2)["count"].item() == 3


def test_only_gradients_that_are_used_are_computed():
    f = tr.compile(grad(lambda x, y: tr.sum(product(x, y))))
    (step,) = [eq for eq in f.program(X, Y).equations if eq.op.primitive.name == "torch_call"]
    assert len(step.results) == 1


def test_integers_booleans_and_empty_arrays():
    f = from_torch(lambda x, n, m: (x[n], n + 1, m & (x > 0), x[:0]))
    x, n, m = tr.asarray([1.0, -2.0]), tr.asarray([1, 0, 1]), tr.asarray([True, True])
    assert [y.tolist() for y in f(x, n, m)] == [[-2, 1, -2], [2, 1, 2], [True, False], []]
    assert grad(lambda x: tr.sum(f(x, n, m)[0]))(x).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int8", "bool"])
def test_dtypes_and_layouts(dtype):
    x = tr.astype(tr.asarray([[1, 0, 3], [0, 1, 0]]), getattr(tr, dtype))
    for given in (x, x.T, tr.flip(x, axis=1), x[:, ::2], x[0, 1], x[:, :0]):
        y = from_torch(lambda x: x.clone())(given)
        assert y.dtype == given.dtype
        assert y.tolist() == given.tolist()


def test_open_sizes_where_the_specs_are_given():
    counted = []
    f = tr.compile(grad(lambda x: tr.sum(from_torch(lambda x: counted.append(1) or x**3, infer=lambda x: x)(x))))
    for n in (2, 3, 4):
        close(f(tr.ones(n)), 3 * np.ones(n))
    assert f.cache_info().traces == 1
    closed = tr.compile(lambda x: product(x, x.T))
    close(closed(X), native(X, X.T))
    close(closed(X[:2]), native(X[:2], X[:2].T))


def test_there_and_back_again():
    f = as_torch(lambda x: tr.sum(from_torch(lambda x: torch.sin(x) * x)(x)))
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x,), nondet_tol=1e-12)
    assert torch.autograd.gradgradcheck(f, (x,), nondet_tol=1e-12)
    g = from_torch(as_torch(lambda x: tr.sum(tr.sin(x) * x)))
    close(hessian(g)(X[0]), hessian(lambda x: tr.sum(tr.sin(x) * x))(X[0]))


def test_mistakes_are_named():
    def writes(x):
        return x.add_(1)

    with pytest.raises(ArgumentError, match="from_torch takes a function"):
        from_torch(3)
    with pytest.raises(ArgumentError, match="use one of vmap, sequential"):
        from_torch(torch.sin, vmap_method="loop")
    with pytest.raises(ArgumentError, match="writes wrote to its argument 0"):
        from_torch(writes, infer=lambda x: x)(tr.asarray(np.ones(3)))
    with pytest.raises(ArgumentError, match=r"returned torch.float64 \[3\] where float64\[2\] was expected"):
        from_torch(lambda x: x * 2, infer=lambda x: x.with_(shape=(2,)))(tr.ones(3))
    with pytest.raises(ArgumentError, match="returned the float 2.0"):
        from_torch(lambda x: 2.0)(tr.ones(3))
    with pytest.raises(ArgumentError, match="are neither arrays nor hashable"):
        from_torch(lambda x, y: x)(tr.ones(3), {1, 2})
