"""Arbitrary objects as operands of entries, operators and ops; entries must treat them as their NumPy kernels do."""

import random
import warnings
from typing import Any

import numpy as np

import tenferro_runtime as tr
from native_rooms import Reduced
from reduced_entries import by_rows, of_all
from tenferro_ad import variable
from tenferro_cpu.native.eager import _eager, _eager_reduce
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_cpu.native.kernels.products import _products
from tenferro_tensor import Op, Spec, Tensor, catalog
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import TenferroError


class Rude:
    """Answers no question."""

    __array_priority__ = 1000

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("rude")

    def __index__(self) -> int:
        raise RuntimeError("rude")


class Own(np.ndarray):
    """A subclass of arrays."""


class Number(float):
    """A subclass of numbers."""


def arrays() -> list[Any]:
    raw = np.arange(4.0)
    frozen = raw.copy()
    frozen.flags.writeable = False
    square = np.arange(16.0).reshape(4, 4)
    return [
        raw, frozen, raw[::2], raw[::-1], raw.view(Own), np.ma.masked_array(raw, raw > 1), np.broadcast_to(1.0, (4, 4)),
        np.frombuffer(bytes(33), "f8", 4, offset=1), square, np.asfortranarray(square), np.zeros(40_000),
        np.zeros(0), np.zeros((0, 4)), np.zeros((4, 0)), np.array(2.0), np.zeros((1,) * 64), np.zeros((2, *(1,) * 31)),
        np.array([None, 1.0, "x", raw], object), np.zeros(4, "M8[s]"), np.zeros(4, "U3"), np.zeros(4, "i4,f8"),
        np.arange(4), np.arange(4, dtype="u1"), np.arange(4) * 1j, np.arange(4, dtype="float32"),
        np.array([True, False, True, True]), raw.astype(">f8"), raw.astype("float16"), raw.astype("longdouble"),
    ]  # fmt: skip


def numbers() -> list[Any]:
    return [
        1, -1, 0, 2**63, 2**64, -(2**70), 1.5, float("nan"), float("inf"), 1e300, 1j, True, Number(2.0), np.float64(2),
        np.float32(2), np.int8(3), np.bool_(True), np.complex64(1j), np.longdouble(1),
    ]  # fmt: skip


def others() -> list[Any]:
    return [None, "x", b"x", (), [], [1.0, 2.0], (1.0,), {}, object(), Rude(), np.ndarray, len, Ellipsis, slice(3)]


def tensors() -> list[Any]:
    made = []
    for a in arrays():
        try:
            made.append(tr.asarray(a))
        except TenferroError:
            continue
    assert len(made) > 12
    return made


def attempt(call: Any, *args: Any) -> tuple[str, Any]:
    try:
        return "value", call(*args)
    except Exception as error:
        return "error", type(error)


def alike(a: tuple[str, Any], b: tuple[str, Any]) -> bool:
    if a[0] != b[0] or a[0] == "error":
        return a == b
    return a[1] is b[1] or str(np.asarray(a[1])) == str(np.asarray(b[1]))


def fuzz_entries() -> None:
    zoo = arrays() + numbers() + others()
    reference = kernels(np, lambda: None)
    # Exact ones; and not powers: of two large Python integers, NumPy's are never done.
    for p in (catalog.add, catalog.sqrt, catalog.lt, catalog.bitwise_and, catalog.remainder, catalog.conj):
        for dtype in ("float64", "float32", "complex128", "int64", "uint8", "bool"):
            ins = (Spec((4,), np.dtype(dtype)),) * len(p.operands)
            try:
                out = p.infer(*ins)
            except TypeError:
                continue
            entry, plain = _eager.entries(reference)[p](ins, (out,)), reference[p](ins, (out,))
            for _ in range(150):
                args = [random.choice(zoo) for _ in range(random.choice((0, 1, 2, 2, 2, 3, 4)))]
                if len(args) > len(ins) and isinstance(args[len(ins)], np.ndarray):
                    args[len(ins)] = args[len(ins)].copy()
                twins = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
                got, expected = attempt(entry, *args), attempt(plain, *twins)
                assert alike(got, expected), (p, dtype, args, got, expected)


def fuzz_reductions() -> None:
    zoo = arrays() + numbers() + others()
    reference = kernels(np, lambda: None)
    for p, dtype in ((catalog.reduce_max, "float64"), (catalog.reduce_sum, "int64"), (catalog.reduce_any, "bool")):
        for shape, axes in (((4,), (0,)), ((4, 4), (0,)), ((4, 4), (1,)), ((4, 4), (0, 1)), ((2, 2, 2), (1,))):
            ins = (Spec(shape, np.dtype(dtype)),)
            out = p.infer(*ins, axes=axes)
            entry, plain = (t[p](ins, (out,), axes=axes) for t in (_eager_reduce.entries(reference), reference))
            for _ in range(100):
                args = [random.choice(zoo) for _ in range(random.choice((0, 1, 1, 1, 1, 2, 3)))]
                got, expected = attempt(entry, *args), attempt(plain, *args)
                # Kernels are made for a rank, and take an array for their result; else they need only do no harm.
                other = len(args) > 1 or (args and isinstance(args[0], np.ndarray) and args[0].ndim != len(shape))
                assert other or alike(got, expected), (p, dtype, axes, args, got, expected)


def fuzz_products() -> None:
    zoo = arrays() + numbers() + others()
    for x, y in [((2, 2), (2, 2)), ((4,), (4,)), ((4, 4), (4, 4)), ((9, 9), (9, 9))]:
        ins = Spec(x, np.dtype("f8")), Spec(y, np.dtype("f8"))
        contract: Any = ((len(x) - 1,), (0,))
        out = catalog.dot_general.infer(*ins, contract=contract, batch=((), ()))
        assert isinstance(out, Spec)
        run = _products.dot_general(np.matmul, ins, (out,), contract, ((), ()))
        for _ in range(300):
            attempt(run, *[random.choice(zoo) for _ in range(random.choice((0, 1, 2, 2, 2, 3)))])


def fuzz_rows() -> None:
    """Entries of kernels of rows, and planned calls."""
    zoo = arrays() + numbers() + others()
    f8 = np.dtype("f8")
    product, summed = Elementwise(catalog.mul.op(), (f8, f8)), Reduced("sum", f8)
    pairs: list[Any] = [product, product.entry()]
    alone: list[Any] = [by_rows(summed), of_all(summed), lambda *xs: summed(*xs, axes=(0,))]
    plain: list[Any] = [lambda x: x.sum(-1), lambda x: x.sum(), lambda x: x.sum(0)]
    for _ in range(800):
        args = [random.choice(zoo) for _ in range(random.choice((0, 1, 2, 2, 2, 2, 3)))]
        for call, meaning, count in [(c, np.multiply, 2) for c in pairs] + [
            (c, m, 1) for c, m in zip(alone, plain, strict=True)
        ]:
            few = args[: count + 1]
            given = [a.copy() if isinstance(a, np.ndarray) and k >= count else a for k, a in enumerate(few)]
            kind, got = attempt(call, *given)
            if kind == "value" and len(given) == count:
                expected = meaning(*map(np.asarray, given))
                np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-12, err_msg=str(given))


OPERATORS = (
    "__add__", "__radd__", "__sub__", "__mul__", "__truediv__", "__rtruediv__", "__pow__", "__matmul__", "__rmatmul__",
    "__mod__", "__floordiv__", "__and__", "__lshift__", "__lt__", "__eq__", "__neg__", "__abs__", "__invert__",
)  # fmt: skip


def fuzz_values() -> None:
    concrete = tensors()
    values = concrete + [variable(t) for t in concrete if t.dtype.kind in "fc"]
    zoo = values + arrays() + numbers() + others()
    ops = [catalog.exp.op(), catalog.add.op(), catalog.select.op(), catalog.transpose.op(permutation=(1, 0))]
    classes = [Tensor, values[-1].__class__]
    for _ in range(6000):
        x, y, op = random.choice(values), random.choice(zoo), random.choice(ops)
        name = random.choice(OPERATORS)
        attempt(getattr(x, name, len), *([y] if random.random() < 0.9 else [y, y]))
        attempt(getattr(random.choice(classes), name, len), random.choice(zoo), y)
        attempt(op, *[random.choice(zoo) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4)))])
        attempt(Op.__call__, *[random.choice([*zoo, op]) for _ in range(random.choice((0, 1, 2, 3)))])
        attempt(op, random.choice(zoo))


def run(seed: int) -> None:
    """All of it, with random choices from a seed."""
    warnings.simplefilter("ignore")
    random.seed(seed)
    fuzz_entries()
    fuzz_reductions()
    fuzz_products()
    fuzz_rows()
    fuzz_values()
