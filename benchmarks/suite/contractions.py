"""Contractions: pairs, networks along given paths, path search, plans that are known, and gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from einsum_first import public
from einsum_gradients import states, zipped

from suite.rows import Call, normal, row


def instance(xp: Any, name: str) -> Call:
    """A public instance of data/einsum along its path; NumPy and PyTorch by opt_einsum."""
    _, subscripts, shapes, path = next(public(name))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) / math.sqrt(max(1, math.prod(s) ** 0.5)) for s in shapes]
    given = [xp.array_of(x) for x in arrays]
    if xp.library == "tenferro":
        from tenferro_einsum import plan

        planned = plan(subscripts, *given, optimize=path)
        return lambda: planned(*given)
    import opt_einsum

    express = opt_einsum.contract_expression(subscripts, *shapes, optimize=path)
    f = xp.compiled(lambda xs: express(*xs, backend=xp.library))
    return lambda: f(given)


@row("numpy", "jax", "torch")
def matrices(xp: Any) -> Call:
    """ij,jk->ik, 256 by 256"""
    return instance(xp, "bin_matmul_256 opt_flops")


@row("numpy", "jax", "torch")
def stack_of_matrices(xp: Any) -> Call:
    """32 products of 64 by 64"""
    return instance(xp, "bin_batched_matmul_b32_m64")


@row("numpy", "jax", "torch")
def permuted(xp: Any) -> Call:
    """aebf,fbdc->adce, 16 each"""
    x, y = normal(xp, (16, 16, 16, 16), (16, 16, 16, 16))
    f = xp.compiled(lambda x, y: xp.einsum("aebf,fbdc->adce", x, y))
    return lambda: f(x, y)


@row("numpy", "jax", "torch", counted=False)
def matrix_chain(xp: Any) -> Call:
    """a chain of 100 unlike matrices"""
    return instance(xp, "str_matrix_chain_multiplication_100 opt_flops")


@row("numpy", "jax", "torch", counted=False)
def states_of_100_sites(xp: Any) -> Call:
    """an inner product of matrix product states, 200 tensors"""
    return instance(xp, "str_mps_varying_inner_product_200 opt_flops")


@row("numpy", "torch", counted=False)
def language_model(xp: Any) -> Call:
    """likelihood of a language model, 84 tensors"""
    return instance(xp, "lm_batch_likelihood_sentence_4_4d opt_flops")


@row("numpy", "jax", "torch", repeats=20)
def known_plan(xp: Any) -> Call:
    """einsum of four matrices of 8 by 8 whose plan is known"""
    xs, einsum = normal(xp, *[(8, 8)] * 4), xp.einsum
    return lambda: einsum("ij,jk,kl,lm->im", *xs)


@row(kind="first")
def search(xp: Any) -> Call:
    """path, plan and first call of a network of 40 tensors"""
    rng = np.random.default_rng(0)
    arguments: list[Any] = []
    for i in range(40):
        arguments += [xp.array_of(rng.normal(size=(2, 2, 2))), sorted({i, (i + 1) % 40, (7 * i + 3) % 40 + 40})]
    return lambda: xp.einsum(*arguments, [])


@row("torch")
def gradient_of_states(xp: Any) -> Call:
    """value and gradients of an inner product of states, 30 sites, bond 8, eager"""
    import tenferro_runtime as tr
    from tenferro_ad import value_and_grad
    from tenferro_einsum import plan

    arrays, terms = states(30, 8, "float64")
    if xp.library == "torch":
        from einsum_gradients import peers

        return peers(arrays, ["jax"])["torch"][0]
    planned = plan(*[v for pair in zip(arrays, terms, strict=True) for v in pair], [], optimize=zipped(30))
    both = value_and_grad(lambda *xs: tr.real(planned(*xs)), argnums=tuple(range(60)))
    return lambda: both(*arrays)[0]
