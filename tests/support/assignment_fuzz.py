"""Random assignments and reads by index, compared with NumPy's in every mode.

    python3 dev run tests/support/assignment_fuzz.py [cases] [first seed]

A case is an array of random shape, layout and dtype, and a few steps ``x[key] = v``, ``x[key] op= v`` and ``x[key]``.
It runs on concrete, recorded, traced and mapped values. All must agree with NumPy; gradients are compared with
differences along a direction (the steps are linear); and no other holder of the memory may see a change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import jvp, vjp
from tenferro_tensor import Spec, Tensor

Array = np.ndarray[Any, Any]
DTYPES: Final = ("float64", "float64", "float32", "complex128", "int64", "bool")


class Step(NamedTuple):
    """One step: ``x[key] = v``, ``x[key] += v``, ``x[key] *= v``, or reading ``x[key]``; `v` of a part of `x` itself,
    of an input, or a number."""

    how: str
    key: Any
    value: Any


class RandomCase(NamedTuple):
    """An array, the inputs that are assigned, and the steps."""

    x: Array
    inputs: tuple[Array, ...]
    steps: tuple[Step, ...]

    def run(self, x: Any, inputs: tuple[Any, ...], wrapped: bool) -> list[Any]:
        """Run the steps; the results are what was read, and `x` at last."""
        found = []
        for how, key, value in self.steps:
            at = _wrapped(key) if wrapped else key
            if how == "read":
                found.append(x[at].copy() if getattr(x[at], "ndim", 0) else x[at])
                continue
            v = inputs[value] if how in ("set", "add") else value
            if how == "self":
                x[at] = x[value]
            elif how == "add":
                x[at] += v
            elif how == "scale":
                x[at] *= v
            else:
                x[at] = v
        return [*found, x]


def _wrapped(key: Any) -> Any:
    """A key whose arrays are tenferro's, every other one of them."""
    if isinstance(key, tuple):
        return tuple([_wrapped(k) for k in key])
    return tr.asarray(key) if isinstance(key, np.ndarray) and key.size % 2 else key


def _elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    numbers = np.asarray(rng.integers(-9, 10, shape))
    if dtype == "bool":
        return np.asarray(numbers > 0)
    return np.asarray(numbers + 1j * rng.integers(-9, 10, shape) if dtype == "complex128" else numbers).astype(dtype)


def _laid_out(rng: np.random.Generator, x: Array) -> Array:
    """The same elements in another layout."""
    kind = rng.integers(5)
    if kind == 1 and x.ndim > 1:
        return np.ascontiguousarray(x.T).T
    if kind == 2 and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if kind == 3 and x.ndim:
        return np.ascontiguousarray(x[::-1])[::-1]
    return x.copy()


def _slice(rng: np.random.Generator, n: int) -> slice:
    start, stop = (None if rng.random() < 0.3 else int(rng.integers(-n - 1, n + 2)) for _ in range(2))
    return slice(start, stop, int(rng.choice([1, 1, 2, -1, -2, 3])))


def _key(rng: np.random.Generator, shape: tuple[int, ...], distinct: bool) -> Any:
    """A random key; `distinct` names no element twice."""
    if rng.random() < 0.12:
        return rng.random(shape) < 0.5  # a mask of all axes
    if rng.random() < 0.08 and len(shape) > 1:
        return rng.random(shape[:1]) < 0.5
    parts: list[Any] = []
    count = int(rng.integers(0, len(shape) + 1))
    arrays = rng.random() < 0.4
    length = int(rng.integers(0, 4))
    for n in shape[:count]:
        if arrays and n and rng.random() < 0.6:
            if distinct:
                length = min(length, n)
                indices = rng.permutation(n)[:length]
            else:
                indices = rng.integers(-n, n, length)
            parts.append(indices.tolist() if rng.random() < 0.2 else indices)
        elif n and rng.random() < 0.35:
            i = int(rng.integers(-n, n))
            parts.append(np.int64(i) if rng.random() < 0.1 else i)
        else:
            parts.append(_slice(rng, n))
    lengths = {len(p) for p in parts if isinstance(p, (list, np.ndarray))}
    if len(lengths) > 1:
        parts = [p[: min(lengths)] if isinstance(p, (list, np.ndarray)) else p for p in parts]
    if rng.random() < 0.2:
        parts.insert(int(rng.integers(0, len(parts) + 1)), None)
    if rng.random() < 0.3:
        parts.append(Ellipsis)
    return parts[0] if len(parts) == 1 and rng.random() < 0.5 else tuple(parts)


def _broadcastable(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    cut = shape[int(rng.integers(0, len(shape) + 1)) :] if rng.random() < 0.3 else shape
    return tuple([1 if rng.random() < 0.15 else n for n in cut])


def random_case(seed: int) -> RandomCase:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    shape = tuple(
        [int(n) for n in rng.choice([0, 1, 2, 3, 4, 5], int(rng.integers(0, 4)), p=[0.06, 0.14, 0.2, 0.2, 0.2, 0.2])]
    )
    dtype = str(rng.choice(DTYPES))
    x = _laid_out(rng, _elements(rng, shape, dtype))
    inputs, steps = list[Array](), list[Step]()
    for _ in range(int(rng.integers(1, 4))):
        how = str(rng.choice(["read", "set", "set", "number", "add", "scale", "self"]))
        if dtype == "bool" and how in ("add", "scale"):
            how = "set"
        key = _key(rng, shape, how != "read")
        part = x[key].shape
        value: Any = None
        if how in ("set", "add"):
            value = len(inputs)
            inputs.append(_elements(rng, _broadcastable(rng, part), dtype))
        elif how == "number":
            value = bool(rng.integers(2)) if dtype == "bool" else float(rng.integers(-5, 5)) if dtype != "int64" else 3
        elif how == "scale":
            value = 3 if dtype == "int64" else 0.5
        elif how == "self":
            other = _key(rng, shape, False)
            if x[other].shape != part:
                other = key
            value = other
        steps.append(Step(how, key, value))
    return RandomCase(x, tuple(inputs), tuple(steps))


def expected(case: RandomCase) -> list[Array]:
    """NumPy's results."""
    x = case.x.copy()
    found = []
    for how, key, value in case.steps:
        if how == "read":
            found.append(np.array(x[key]))
        elif how == "self":
            x[key] = x[value].copy()
        elif how == "add":
            x[key] = x[key] + case.inputs[value]
        elif how == "scale":
            x[key] = (x[key] * value).astype(x.dtype)
        else:
            x[key] = value if how == "number" else case.inputs[value]
    return [*found, x]


def check(seed: int) -> None:
    """Run a case in every mode.

    Raises:
        AssertionError: a mode differs from NumPy, or somebody saw a change.
    """
    case = random_case(seed)
    wanted = expected(case)
    f = lambda x, *inputs: case.run(x.copy(), inputs, True)
    _same("concrete", _concrete(case), wanted)
    program = tr.trace(f, *[Spec(a.shape, a.dtype) for a in (case.x, *case.inputs)])
    _same("traced", program.run(case.x, *case.inputs), wanted)
    lanes = tr.vmap(f)(*[tr.stack([tr.asarray(a), tr.zeros_like(tr.asarray(a))]) for a in (case.x, *case.inputs)])  # type: ignore[no-untyped-call]
    _same("mapped", [lane[0] for lane in lanes], wanted)
    if case.x.dtype.kind in "fc":
        _check_gradients(case, f, wanted)


def _concrete(case: RandomCase) -> list[Any]:
    """The results on concrete tensors, which share their memory with whoever may."""
    mine = case.x.copy(order="K")
    outside = tr.asarray(mine)
    x = tr.asarray(mine)
    inputs = tuple([tr.asarray(a) for a in case.inputs])
    x = x * 1 if mine.dtype.kind != "b" and mine.size % 2 else x  # memory of its own, or NumPy's
    held = [+x, x.data, tr.broadcast_to(x, (2, *x.shape))]
    before = [np.array(h) for h in held]
    found = case.run(x, inputs, True)
    assert found[-1] is x and isinstance(x, Tensor), "the object is the same"
    for h, b in zip(held, before, strict=True):
        np.testing.assert_array_equal(np.asarray(h), b, err_msg="somebody who holds the memory saw a change")
    np.testing.assert_array_equal(mine, case.x, err_msg="the array outside was changed")
    np.testing.assert_array_equal(np.asarray(outside), case.x)
    for a, b in zip(inputs, case.inputs, strict=True):
        np.testing.assert_array_equal(np.asarray(a), b, err_msg="an input was changed")
    return found


def _same(mode: str, found: Any, wanted: list[Array]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, f"{mode}: {a.dtype}{a.shape}, NumPy has {b.dtype}{b.shape}"
        np.testing.assert_array_equal(np.asarray(a), b, err_msg=mode)


def _check_gradients(case: RandomCase, f: Callable[..., list[Any]], wanted: list[Array]) -> None:
    """The steps are affine: a direction makes the difference that the tangent is, and the adjoint agrees with it."""
    rng = np.random.default_rng(7)
    operands = (case.x, *case.inputs)
    directions = [_elements(rng, a.shape, str(a.dtype)) for a in operands]
    moved = RandomCase(
        np.asarray(case.x + directions[0]),
        tuple([np.asarray(a + d) for a, d in zip(case.inputs, directions[1:])]),
        case.steps,
    )
    difference = [a - b for a, b in zip(expected(moved), wanted, strict=True)]
    values, tangents = jvp(f, tuple(map(tr.asarray, operands)), tuple(map(tr.asarray, directions)))
    _same("forward", values, wanted)
    for t, d in zip(tangents, difference, strict=True):
        np.testing.assert_allclose(np.asarray(t), d, rtol=1e-5, atol=1e-5, err_msg="tangent")
    recorded, pull = vjp(f, *map(tr.asarray, operands))
    _same("recorded", recorded, wanted)
    weights = [_elements(rng, d.shape, str(d.dtype)) for d in difference]
    pulled = pull([tr.asarray(w) for w in weights])
    left, right = _inner(weights, difference), _inner([np.asarray(p) for p in pulled], directions)
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-3, err_msg="cotangents against tangents")


def _inner(us: list[Array], vs: list[Array]) -> Any:
    """The inner product of lists of arrays."""
    return sum([np.vdot(u, v).real for u, v in zip(us, vs, strict=True)])


def main(count: int = 1000, first: int = 0) -> None:
    """Check cases, and say how many there were."""
    for seed in range(first, first + count):
        try:
            check(seed)
        except Exception:
            print(f"seed {seed}: {random_case(seed)}")
            raise
    print(f"{count} cases agree")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
