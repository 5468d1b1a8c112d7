"""Code of a user: the type of each expression, which mypy and pyright must infer, and typos that must be errors.

`# type: ignore` on a line that has no error is itself an error, under both; so each of them marks a typo that is seen.
"""
# mypy: disallow-untyped-calls, disallow-untyped-decorators, disallow-untyped-defs, strict-optional
# pyright: basic, reportUnnecessaryTypeIgnoreComment=error

from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np

import tenferro_ad as ad
import tenferro_einsum
import tenferro_linalg as tl
import tenferro_runtime as tr

Params = dict[str, tr.Array]


def loss(x: tr.Array, scale: float = 1.0) -> tr.Array:
    """A doc."""
    return tr.sum(x * x) * scale


def square(x: tr.Array) -> tr.Array:
    return x * x


def product(x: tr.Array, y: tr.Array) -> tr.Array:
    return tr.sum(x * y)


def model(params: Params, x: tr.Array) -> tr.Array:
    return tr.sum(params["w"] * x)


def with_aux(x: tr.Array) -> tuple[tr.Array, str]:
    return tr.sum(x), "aux"


def of_number(t: float) -> tr.Array:
    return tr.sin(tr.asarray(t))


@tr.compile
def fast(x: tr.Array, scale: float = 2.0) -> tr.Array:
    return x * scale


@tr.compile(static_argnames="n")
def power(x: tr.Array, n: int) -> tr.Array:
    return x**n


@ad.checkpoint
def block(x: tr.Array) -> tr.Array:
    return tr.tanh(x)


@ad.custom_rule(jvp=lambda primals, tangents, outs: (2 * primals[0] * tangents[0],))
def ruled(x: tr.Array) -> tr.Array:
    return x * x


@tr.register_dataclass
@dataclass
class Layer:
    w: tr.Array
    b: tr.Array


class Model:
    @tr.compile
    def apply(self, x: tr.Array) -> tr.Array:
        return x + 1


def takes_array(x: tr.Array) -> tr.Array:
    return x


def arrays() -> None:
    x = tr.ones(3)
    assert_type(x, tr.Array)
    assert_type(x + 1, tr.Array)
    assert_type(2 * x, tr.Array)
    assert_type(x[0], tr.Array)
    assert_type(x.T if x.ndim == 2 else x, tr.Array)
    assert_type(x.sum(), tr.Array)
    assert_type(x.reshape(3, 1).shape, tuple[int, ...])
    assert_type(x.size, int)
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.at[0].set(2.0), tr.Array)
    assert_type(x.numpy(), np.ndarray[Any, Any])
    assert_type(tr.sum(x, axis=0), tr.Array)
    assert_type(tr.stack(tr.split(x, 3)), tr.Array)
    assert_type(tr.split(x, 3), list[tr.Array])
    assert_type(tr.meshgrid(x, x), tuple[tr.Array, ...])
    assert_type(tr.histogram(x), tuple[tr.Array, tr.Array])
    assert_type(tr.average(x), tr.Array)
    assert_type(tr.average(x, returned=True), tuple[tr.Array, tr.Array])
    assert_type(tr.unique_counts(x).counts, tr.Array)
    assert_type(tr.allclose(x, x), tr.Array)
    assert_type(tr.random.normal(tr.random.key(0), (3,)), tr.Array)
    assert_type(tr.special.erf(x), tr.Array)
    assert_type(tr.nn.relu(x), tr.Array)
    takes_array(tr.ones(3))
    takes_array(tr.asarray([1.0]))


def families() -> None:
    a = tr.eye(3)
    assert_type(tr.linalg.svd(a).S, tr.Array)
    assert_type(tr.linalg.qr(a).Q, tr.Array)
    assert_type(tr.linalg.eigh(a).eigenvectors, tr.Array)
    assert_type(tr.linalg.solve(a, tr.ones(3)), tr.Array)
    assert_type(tr.linalg.expm(a), tr.Array)
    assert_type(tl.lu(a).L, tr.Array)
    assert_type(tr.fft.fft(a), tr.Array)
    assert_type(tr.fft.rfft(a[0]), tr.Array)
    assert_type(tr.einsum("ij,jk->ik", a, a), tr.Array)
    assert_type(tenferro_einsum.einsum("ii->", a), tr.Array)
    assert_type(tr.cross(a[0], a[1]), tr.Array)


def derivatives() -> None:
    x = tr.ones(3)
    params: Params = {"w": x}
    assert_type(tr.grad(loss)(x), tr.Array)
    assert_type(tr.grad(loss)(x, 2.0), tr.Array)
    assert_type(ad.grad(product, 1)(x, x), tr.Array)
    assert_type(tr.grad(product, (0, 1))(x, x), tuple[tr.Array, ...])
    assert_type(tr.grad(model)(params, x), Params)
    assert_type(tr.grad(of_number)(1.0), tr.Array)
    assert_type(tr.grad(with_aux, has_aux=True)(x), tuple[tr.Array, str])
    assert_type(tr.grad(tr.grad(of_number))(1.0), tr.Array)
    assert_type(tr.value_and_grad(loss)(x), tuple[tr.Array, tr.Array])
    assert_type(tr.value_and_grad(model)(params, x), tuple[tr.Array, Params])
    assert_type(tr.value_and_grad(with_aux, has_aux=True)(x), tuple[tuple[tr.Array, str], tr.Array])
    assert_type(tr.hessian(loss)(x), tr.Array)
    assert_type(tr.jacfwd(square)(x), tr.Array)
    assert_type(tr.jacrev(square)(x), tr.Array)
    assert_type(tr.jvp(square, (x,), (x,)), tuple[tr.Array, tr.Array])
    assert_type(tr.hvp(loss, (x,), (x,)), tr.Array)
    value, pull = tr.vjp(square, x)
    assert_type(value, tr.Array)
    assert_type(pull(x), tuple[tr.Array, ...])
    value, push = tr.linearize(square, x)
    assert_type(push(x), tr.Array)
    assert_type(tr.laplacian(loss)(x), tr.Array)
    assert_type(block(x), tr.Array)
    assert_type(tr.grad(lambda_free)(x), tr.Array)
    assert_type(ruled(x), tr.Array)
    assert_type(tr.fixed_point(square, 0.5), tr.Array)
    w = tr.variable([1.0, 2.0])
    tr.sum(w * w).backward()
    takes_array(w.grad)


def lambda_free(x: tr.Array) -> tr.Array:
    return tr.sum(block(fast(x)))


def compiled() -> None:
    x = tr.ones(3)
    assert_type(fast(x), tr.Array)
    assert_type(fast(x, scale=3.0), tr.Array)
    assert_type(power(x, n=2), tr.Array)
    assert_type(fast.cache_info().traces, int)
    assert_type(tr.compile(tr.grad(loss))(x), tr.Array)
    assert_type(tr.compile(tr.value_and_grad(model))({"w": x}, x), tuple[tr.Array, Params])
    assert_type(tr.vmap(square)(x), tr.Array)
    assert_type(tr.vmap(tr.grad(of_number))(x), tr.Array)
    assert_type(Model().apply(x), tr.Array)
    assert_type(tr.fori_loop(0, 3, lambda i, c: c + x, x), tr.Array)
    assert_type(tr.while_loop(lambda c: c < 3.0, lambda c: c + 1.0, 0.0), tr.Array)
    assert_type(tr.scan(accumulate, 0.0, x), tuple[tr.Array, tr.Array])
    assert_type(tr.cond(x[0] > 0, square, square, x), tr.Array)
    assert_type(tr.map(square, x), tr.Array)
    assert_type(tr.tree_map(square, {"w": x}), dict[str, tr.Array])
    assert_type(tr.grad(of_layer)(Layer(x, x)), Layer)
    with tr.compute_device("cpu") as device:
        assert_type(device, tr.ComputeDevice)


def accumulate(carry: tr.Array, x: tr.Array) -> tuple[tr.Array, tr.Array]:
    return carry + x, carry


def of_layer(layer: Layer) -> tr.Array:
    return tr.sum(layer.w * layer.b)


def typos() -> None:
    """Never called."""
    x = tr.ones(3)
    tr.summ(x)  # type: ignore
    x.foo  # type: ignore
    x.summ()  # type: ignore
    tr.linalg.svdd(x)  # type: ignore
    tr.linalg.svd(x).s  # type: ignore
    tr.fft.fftt(x)  # type: ignore
    tr.random.nromal(tr.random.key(0), (3,))  # type: ignore
    tl.svd_truncate(x)  # type: ignore
    ad.gradd(loss)  # type: ignore
    tr.sum(x, axes=0)  # type: ignore
    fast("wrong", 3)  # type: ignore
    fast(x, factor=3.0)  # type: ignore
    tr.grad(loss, argnum=0)  # type: ignore
    tr.grad(model)(x, x)  # type: ignore
