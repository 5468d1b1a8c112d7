"""Random functions over the catalog: drawn while they run on concrete tensors, replayed on values of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tenferro_tensor import Tensor, catalog, tensor

Instruction = Callable[[list[Any]], Any]

UNARY = ("neg", "abs", "tanh", "sin", "cos", "conj", "real", "sign", "is_finite")
BINARY = ("add", "mul", "sub", "maximum", "minimum", "lt", "eq", "hypot")
SCALARS = (2, -1, True, 0.5, -1.25, 2j)
DTYPES = ("float64", "float32", "complex128", "int64", "bool")


def _ok(*values: Any) -> bool:
    """Bounded, so that all executors agree to rounding."""
    return all(v.spec.size <= 64 and (v.spec.size == 0 or np.all(np.abs(v.data) < 1e3)) for v in values)


class Random:
    """A random function: `inputs`, and `__call__` that applies it to values in their place."""

    def __init__(self, inputs: list[Tensor], instructions: list[Instruction], outputs: list[int]) -> None:
        self.inputs, self.instructions, self.outputs = inputs, instructions, outputs

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        pool = list(values)
        for instruction in self.instructions:
            pool.append(instruction(pool))
        return tuple(pool[i] for i in self.outputs)

    def __repr__(self) -> str:
        return f"Random({[t.spec for t in self.inputs]}, {len(self.instructions)} instructions)"


@st.composite
def random_functions(draw: Any, max_steps: int = 12) -> Random:
    """Functions of one to three arrays (0-d and empty ones included) with up to `max_steps` operations."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, m = draw(st.sampled_from([(2, 3), (1, 3), (0, 2), (1, 1), (3, 2)]))
    inputs = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from([(), (m,), (n, m), (n, 1), (m, n)]))
        dtype = draw(st.sampled_from(DTYPES))
        values = rng.normal(size=shape) * 2
        if dtype == "complex128":
            values = values + 1j * rng.normal(size=shape)
        inputs.append(tensor(np.asarray(values).astype(dtype)))
    constant = tensor(rng.normal(size=draw(st.sampled_from([(), (m,)]))))
    pool: list[Tensor] = list(inputs)
    instructions: list[Instruction] = []
    for _ in range(draw(st.integers(1, max_steps))):
        instruction = _instruction(draw, pool, constant)
        try:
            with np.errstate(all="ignore"):
                value = instruction(pool)
        except (TypeError, ValueError, IndexError, ArithmeticError):
            continue
        if not _ok(value):
            continue
        instructions.append(instruction)
        pool.append(value)
    outputs = draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=3))
    return Random(inputs, instructions, [*outputs, len(pool) - 1])


def _instruction(draw: Any, pool: list[Tensor], constant: Tensor) -> Instruction:
    i = draw(st.integers(0, len(pool) - 1))
    j = draw(st.integers(0, len(pool) - 1))
    x = pool[i].spec
    kind = draw(
        st.sampled_from(
            "unary binary binary binary scalar constant select sum transpose reshape broadcast join slice dot".split()
        )
    )
    if kind == "unary":
        name = draw(st.sampled_from(UNARY))
        return lambda p: getattr(catalog, name)(p[i])
    if kind == "binary":
        name = draw(st.sampled_from(BINARY))
        return lambda p: getattr(catalog, name)(p[i], p[j])
    if kind == "scalar":
        name, c = draw(st.sampled_from(BINARY)), draw(st.sampled_from(SCALARS))
        if draw(st.booleans()):
            return lambda p: getattr(catalog, name)(p[i], c)
        return lambda p: getattr(catalog, name)(c, p[i])
    if kind == "constant":
        return lambda p: catalog.mul(p[i], catalog.tanh(constant))
    if kind == "select":
        return lambda p: catalog.select(catalog.lt(catalog.real(p[i]), 0), p[i], p[j])
    if kind == "sum":
        axes = tuple(sorted(draw(st.sets(st.integers(0, x.ndim - 1)))) if x.ndim else ())
        return lambda p: catalog.reduce_sum(p[i], axes=axes)
    if kind == "transpose":
        permutation = tuple(draw(st.permutations(range(x.ndim))))
        return lambda p: catalog.transpose(p[i], permutation=permutation)
    if kind == "reshape":
        shape = draw(st.sampled_from([(x.size,), (1, *x.shape), (*x.shape, 1), x.shape]))
        return lambda p: catalog.reshape(p[i], shape=shape)
    if kind == "broadcast":
        if draw(st.booleans()):
            return lambda p: catalog.broadcast_in_dim(p[i], shape=(2, *x.shape), dims=tuple(range(1, x.ndim + 1)))
        return lambda p: catalog.broadcast_in_dim(p[i], shape=(*x.shape, 2), dims=tuple(range(x.ndim)))
    if kind == "join":
        axis = draw(st.integers(0, max(x.ndim - 1, 0)))
        return lambda p: catalog.concatenate(p[i], p[i], axis=axis)
    if kind == "slice":
        start = tuple(min(1, d) for d in x.shape)
        return lambda p: catalog.slice_(p[i], start=start, limit=x.shape, stride=(1,) * x.ndim)
    return lambda p: catalog.dot_general(p[i], p[j], contract=((x.ndim - 1,), (0,)), batch=((), ()))


def same(got: Any, expected: Any, rtol: float = 1e-5) -> None:
    """Assert that two tensors have one spec and equal elements."""
    assert got.spec is expected.spec, (got.spec, expected.spec)
    np.testing.assert_allclose(np.asarray(got.data), np.asarray(expected.data), rtol=rtol, atol=1e-7)
