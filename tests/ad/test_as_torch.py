"""tenferro functions inside PyTorch: values, derivatives and transforms as PyTorch takes them of its own functions."""

import gc
import weakref

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import custom_rule, grad
from tenferro_einsum import einsum
from tenferro_runtime import special
from tenferro_tensor_core import ArgumentError, MissingRuleError

torch = pytest.importorskip("torch")
as_torch = pytest.importorskip("tenferro_ad.adapters.torch").as_torch

# PyTorch compiles parts of its own in forward mode, by functions that it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

RNG = np.random.default_rng(7)


def real(*shape):
    return torch.tensor(RNG.normal(size=shape), requires_grad=True)


def cplx(*shape):
    return torch.tensor(RNG.normal(size=shape) + 1j * RNG.normal(size=shape), requires_grad=True)


@custom_rule(jvp=lambda primals, tangents, outs: (3 * primals[0] ** 2 * tangents[0],))
def cube(x):
    return x * x * x


def decayed(x):
    return tr.scan(lambda c, v: (0.5 * c + tr.sin(v), c * v), x[0], x)[1]


def gathered(x):
    rows = tr.take(x, tr.asarray([2, 0, 2]), axis=0)
    return x.at[tr.asarray([1, 1])].add(rows[:2] * rows[1:])


def symmetric(x):
    return tr.linalg.eigh(x + x.T)[0]


def singular(x):
    u, s, vh = tr.linalg.svd(x, full_matrices=False)
    return s, (u * s**2) @ vh


FUNCTIONS = {
    "svd": (singular, lambda: (real(3, 2),)),
    "svd complex": (singular, lambda: (cplx(2, 3),)),
    "eigh": (symmetric, lambda: (real(3, 3),)),
    "solve": (tr.linalg.solve, lambda: (cplx(3, 3), cplx(3, 2))),
    "einsum": (lambda a, b: einsum("bij,bjk->ik", a, b), lambda: (real(2, 2, 3), real(2, 3, 2))),
    "fft": (lambda x: tr.fft.irfft(tr.fft.rfft(x) * (1 + 2j)), lambda: (real(6),)),
    "loop": (decayed, lambda: (real(4),)),
    "gather and scatter": (gathered, lambda: (real(4, 2),)),
    "special": (lambda x: special.gammaln(x * x + 1) * special.erf(x), lambda: (real(4),)),
    "norm": (tr.linalg.vector_norm, lambda: (cplx(4),)),
    "custom rule": (cube, lambda: (real(3),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives_agree_with_differences_in_both_modes(name):
    f, arguments = FUNCTIONS[name]
    f, xs = as_torch(f), arguments()
    bits = {"nondet_tol": 1e-12}  # a program may become machine code between two calls, which rounds in another order
    assert torch.autograd.gradcheck(f, xs, check_forward_ad=True, check_undefined_grad=True, **bits)
    assert torch.autograd.gradgradcheck(f, xs, check_fwd_over_rev=True, **bits)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms_of_torch_func_agree_with_each_other(name):
    f, arguments = FUNCTIONS[name]
    f = as_torch(f)
    xs = [x.detach() for x in arguments()]

    def loss(*xs):
        return sum((y * y.conj()).real.sum() for y in _leaves(f(*xs)))

    every = tuple(range(len(xs)))
    value, pull = torch.func.vjp(loss, *xs)
    gradients = pull(torch.ones_like(value))
    ts = [torch.ones_like(x) for x in xs]
    _, pushed = torch.func.jvp(loss, tuple(xs), tuple(ts))
    _close(pushed, sum((g.conj() * t).real.sum() for g, t in zip(gradients, ts)))
    _close(torch.func.grad(loss, every)(*xs), gradients)
    if not any(x.is_complex() for x in xs):
        _close(torch.func.jacfwd(loss, every)(*xs), gradients)
        by_reverse = torch.func.jacrev(torch.func.jacrev(loss))(*xs)
        _close(torch.func.hessian(loss)(*xs), by_reverse)
    several = [torch.stack([x, x.flip(0) + 1], 1) for x in xs]
    lanes = [tuple(x[:, i] for x in several) for i in range(2)]
    _close(torch.func.vmap(f, 1)(*several), _stacked([f(*lane) for lane in lanes]))
    each = torch.func.vmap(torch.func.grad(loss, every), 1)(*several)
    _close(each, _stacked([torch.func.grad(loss, every)(*lane) for lane in lanes]))
    through = torch.func.grad(lambda *xs: torch.func.vmap(loss, 1)(*xs).sum(), every)(*several)
    _close([g.movedim(1, 0) for g in through], each)


def _leaves(x):
    return x if isinstance(x, (tuple, list)) else (x,)


def _stacked(results):
    return [torch.stack(parts) for parts in zip(*map(_leaves, results))]


def _close(a, b):
    for x, y in zip(_leaves(a), _leaves(b), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-8)
        assert bool(torch.isfinite(torch.view_as_real(x) if x.is_complex() else x).all())


def test_third_derivatives_and_mixed_nesting():
    f, g = as_torch(lambda x: tr.sum(tr.sin(x) * x**2)), lambda x: (torch.sin(x) * x**2).sum()
    x = real(3).detach()
    for modes in ("rrr", "frf", "rfr", "ffr"):
        a, b = f, g
        for mode in modes:
            jacobian = torch.func.jacrev if mode == "r" else torch.func.jacfwd
            a, b = jacobian(a), jacobian(b)
        _close(a(x), b(x))


def test_closures_over_outer_levels_are_differentiated():
    f, x, z = as_torch(lambda x, y: tr.sum(x * x * y)), real(3).detach(), real(3).detach()
    mixed = torch.func.grad(lambda z: torch.func.grad(lambda x: f(x, z))(x).sum())(z)
    _close(mixed, 2 * x)
    lanes = torch.func.grad(lambda z: torch.func.vmap(torch.func.grad(f))(torch.stack([x, z]), z.expand(2, 3)).sum())
    _close(lanes(z), 2 * x + 4 * z)
    twice = torch.func.jacfwd(lambda z: torch.func.jacrev(lambda x: f(z, x))(x))(z)
    _close(twice, torch.diag(2 * z))


@pytest.mark.parametrize(
    "dtype", "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
)
def test_every_dtype_comes_back_as_it_went(dtype):
    x = torch.tensor([[1, 0, 3], [0, 1, 2]]).to(getattr(torch, dtype))
    f = as_torch(lambda x: (tr.where(x == 0, x, x), tr.flip(x, axis=1), x[:, :0]))
    for y, expected in zip(f(x), (x, x.flip(1), x[:, :0])):
        assert y.dtype == x.dtype
        assert torch.equal(y, expected)
    for layout in (x.T, x[:, ::2], x[0, 0], x.expand(2, 2, 3), x[:, :0]):
        assert torch.equal(
            as_torch(lambda x: tr.concat([tr.reshape(x, (-1,))] * 2))(layout), layout.reshape(-1).repeat(2)
        )


def test_conjugated_and_negated_views_are_resolved():
    z = cplx(3).detach()
    assert torch.equal(as_torch(lambda x: x * 1)(z.conj()), z.conj().resolve_conj())
    assert torch.equal(as_torch(lambda x: x * 1)(z.conj().imag), -z.imag)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_gradients_have_the_dtype_of_their_argument(dtype):
    x = torch.tensor([1.0, 2.0]).to(getattr(torch, dtype)).requires_grad_()
    as_torch(lambda x: tr.sum(tr.real(x * tr.conj(x))))(x).backward()
    assert x.grad.dtype == x.dtype
    assert torch.equal(x.grad, 2 * x.detach())


def test_containers_numbers_and_constants_are_arguments():
    @as_torch
    def f(p, *rest, power, mode="sum"):
        total = sum(tr.sum(p[k] ** power) for k in p) + rest[0][1] * 2
        return {"value": total if mode == "sum" else -total, "parts": [p["b"], None]}

    p = {"a": real(2), "b": real()}
    for mode, sign in (("sum", 1), ("minus", -1)):
        for number in (1.5, 2.5):
            found = f(p, ("unused", number), power=2, mode=mode)
            assert found["parts"][1] is None
            _close(found["value"], sign * ((p["a"] ** 2).sum() + p["b"] ** 2 + 2 * number))
            _close(torch.autograd.grad(found["value"], p["a"]), sign * 2 * p["a"])


def test_the_result_may_change_its_structure_with_sizes():
    f = as_torch(lambda x: [x[i] for i in range(x.shape[0])])
    assert [len(f(torch.ones(n))) for n in (2, 3, 2)] == [2, 3, 2]


def test_gradients_only_where_they_are_asked_for():
    x, y, unused, n = real(3), real(3).detach(), real(3), torch.tensor([0, 2])
    value = as_torch(lambda x, y, u, n: tr.sum(tr.take(x * y, n)) + 0 * n[0])(x, y, unused, n)
    assert value.requires_grad
    assert torch.autograd.grad(value, [x, unused], allow_unused=True)[1] is None
    assert not as_torch(tr.sin)(y).requires_grad
    with torch.no_grad():
        assert not as_torch(tr.sin)(x).requires_grad
    with torch.inference_mode():
        assert not as_torch(tr.sin)(x).requires_grad


def test_integer_results_have_no_derivative():
    x = real(4)
    values, order, count = as_torch(lambda x: (tr.sort(x), tr.argsort(x), tr.sum(x > 0)))(x)
    assert (values.requires_grad, order.requires_grad, count.requires_grad) == (True, False, False)
    values[0].backward()
    assert torch.equal(x.grad, torch.nn.functional.one_hot(order[0], 4).double())
    _, (moved, _) = torch.func.jvp(as_torch(lambda x: (tr.sort(x), tr.argsort(x))), (x.detach(),), (x.detach(),))
    _close(moved, values)


def test_one_of_several_results_may_have_a_gradient():
    f = as_torch(lambda x: (tr.sin(x), tr.cos(x), x * x))
    x = real(3)
    for k, slope in enumerate((torch.cos(x), -torch.sin(x), 2 * x)):
        _close(torch.autograd.grad(f(x)[k].sum(), x), slope)
    _close(torch.autograd.grad(f(x)[0].sum() + f(x)[2].sum(), x), torch.cos(x) + 2 * x)


def test_gradients_of_complex_values_follow_pytorch():
    z, w = cplx(3), cplx(3)
    ours, theirs = as_torch(lambda z, w: z * z / w), lambda z, w: z * z / w
    g = cplx(3).detach()
    _close(torch.autograd.grad(ours(z, w), (z, w), g), torch.autograd.grad(theirs(z, w), (z, w), g))
    x = real(3)
    _close(
        torch.autograd.grad(as_torch(lambda x, z: tr.sum(tr.abs(x * z)))(x, z), (x, z)),
        torch.autograd.grad((x * z).abs().sum(), (x, z)),
    )


def test_memory_is_shared_both_ways_but_never_written_to_by_two():
    x = torch.arange(6.0).reshape(2, 3)
    seen = []
    as_torch(lambda x: tr.pure_callback(lambda a: seen.append(a.__array_interface__["data"][0]) or a, x, x))(x)
    assert seen == [x.data_ptr()]
    constant = tr.ones(3)
    f = as_torch(lambda x: (x, x.T, tr.reshape(x, (-1,)), constant, x * 2, x * 2, constant[1:]))
    before = x.clone()
    outs = f(x)
    for y in outs:
        y.fill_(7)
    assert torch.equal(x, before)
    assert constant.tolist() == [1, 1, 1]
    assert [y.tolist() for y in f(x)[3:5]] == [[1, 1, 1], (2 * before).tolist()]


def test_writing_to_an_argument_before_the_backward_pass_is_an_error():
    x = real(3)
    y = x * 1
    value = as_torch(lambda x: tr.sum(x * x))(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_writing_to_a_result_is_recorded():
    x = real(3)
    y = as_torch(tr.sin)(x)
    y.mul_(2)
    y.sum().backward()
    _close(x.grad, 2 * torch.cos(x))


def test_the_graph_may_be_kept_and_is_freed():
    x = real(3)
    y = as_torch(lambda x: tr.sum(tr.exp(x)))(x)
    y.backward(retain_graph=True)
    y.backward()
    _close(x.grad, 2 * torch.exp(x))
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    node = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert node() is None


def test_compiled_functions_and_gradients_are_functions_like_others():
    x = real(3)
    for f in (tr.compile(lambda x: tr.sum(tr.sin(x) * x)), grad(lambda x: tr.sum(tr.sin(x) * x))):
        assert torch.autograd.gradgradcheck(as_torch(f), (x,), nondet_tol=1e-12)


def test_checkpoints_run_the_function_again():
    x, f = real(3), as_torch(lambda x: tr.sum(tr.sin(x)))
    torch.utils.checkpoint.checkpoint(lambda x: f(x * 2), x, use_reentrant=False).backward()
    _close(x.grad, 2 * torch.cos(2 * x))


def test_dual_numbers_and_graphs_are_made_at_once():
    x, f = real(3), as_torch(lambda x: tr.sum(tr.sin(x)))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        (slope,) = torch.autograd.grad(f(dual), dual)
        _close(torch.autograd.forward_ad.unpack_dual(slope).tangent, -torch.sin(x))


def test_modules_are_trained():
    class Layer(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self):
            super().__init__()
            self.weight, self.bias = torch.nn.Parameter(torch.zeros(2, 1)), torch.nn.Parameter(torch.zeros(1))
            self.apply_ = as_torch(lambda x, w, b: x @ w + b)

        def forward(self, x):
            return self.apply_(x, self.weight, self.bias)

    layer, x = Layer(), torch.tensor(RNG.normal(size=(32, 2)), dtype=torch.float32)
    goal = x @ torch.tensor([[2.0], [-1.0]]) + 0.5
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(layer(x), goal)
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # which the compiler looks at
def test_torch_compile_breaks_its_graph_once():
    graphs = []

    def backend(module, _):
        graphs.append(module)
        return module.forward

    f = as_torch(lambda x: tr.sum(tr.sin(x)))
    g = torch.compile(lambda x: f(x * 2) + 1, backend=backend)
    for _ in range(4):
        x = real(3)
        value = g(x)
        value.backward()
        _close((value, x.grad), (torch.sin(2 * x).sum() + 1, 2 * torch.cos(2 * x)))
    assert len(graphs) == 2


def test_a_function_is_traced_once_for_all_sizes():
    traces = []

    @as_torch
    def f(x):
        traces.append(x.shape)
        return tr.sum(x * x)

    for n in (2, 3, 4, 3):
        x = real(n)
        f(x).backward()
        _close(x.grad, 2 * x)
    assert len(traces) == 1
    for n in (2, 3, 4):
        x = real(n, 3).detach()
        _close(torch.func.vmap(f)(x), (x * x).sum(1))
    assert len(traces) == 2


def test_a_closure_that_is_rebound_is_seen_by_derivatives():
    scale = tr.asarray(2.0)
    f = as_torch(lambda x: tr.sum(scale * x * x))
    x = real(2).detach()
    _close(torch.func.hessian(f)(x), 4 * torch.eye(2, dtype=torch.float64))
    scale = tr.asarray(3.0)
    _close(torch.func.grad(f)(x), 6 * x)
    _close(torch.func.hessian(f)(x), 6 * torch.eye(2, dtype=torch.float64))


def test_sizes_that_depend_on_data():
    f = as_torch(lambda x: (tr.compress(x * x, x > 0), tr.sum(tr.sin(tr.compress(x, x > 0)))))
    for n in (5, 7):
        x = real(n)
        chosen, value = f(x)
        _close(chosen, (x * x)[x > 0])
        _close(torch.autograd.grad(value + 2 * chosen.sum(), x), torch.where(x > 0, torch.cos(x) + 4 * x, 0.0))


def test_arguments_that_cannot_be_taken_are_refused():
    with pytest.raises(ArgumentError, match="as_torch takes a function"):
        as_torch(3)
    with pytest.raises(ArgumentError, match=r"x\.to_dense\(\)"):
        as_torch(tr.sin)(torch.eye(3).to_sparse())
    with pytest.raises(ArgumentError, match=r"device meta|on meta"):
        as_torch(tr.sin)(torch.empty(3, device="meta"))
    with pytest.raises(ArgumentError, match="not hashable"):
        as_torch(lambda x, y: x)(torch.ones(3), {1, 2})


def test_a_missing_rule_says_so():
    f = as_torch(lambda x: tr.pure_callback(np.sin, x, x))
    assert torch.allclose(f(torch.ones(2)), torch.sin(torch.ones(2)))
    with pytest.raises(MissingRuleError, match="pure_callback"):
        f(torch.ones(2, requires_grad=True)).sum().backward()
