"""`check_primitive` finds a planted mistake of every kind, and says nothing about what is right."""

import ctypes
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_primitive
from tenferro_fft import rfft
from tenferro_linalg import inv, svdvals
from tenferro_runtime.extension import Cost, General, Inactive, Linear, Slopes, catalog, sized
from tenferro_tensor import REGISTRY, Primitive, Spec
from tenferro_tensor.checking import CheckError
from tenferro_tensor_core import ArgumentError, DTypeError
from tenferro_xla import XlaExecutor

RNG = np.random.default_rng(0)
X = tr.asarray(RNG.uniform(0.5, 2.0, (3, 4)))
_numbers = count()


def cubed(x: Spec) -> Spec:
    """The third power of each element."""
    if not x.inexact:
        raise DTypeError(f"cubed takes real and complex floating-point numbers, got {x!r}")
    return x


def right_kernel(x: Any) -> Any:
    return x * x * x


RIGHT_RULE = General(
    jvp=lambda primals, tangents, outs: (3.0 * primals[0] * primals[0] * tangents[0],),
    vjp=lambda primals, outs, cotangents: (cotangents[0] * tr.conj(3.0 * primals[0] * primals[0]),),
)


def lowered(e: Any, operands: Any, outs: Any) -> Any:
    (x,) = operands
    square = e.op("multiply", [x, x], outs[0])
    return e.op("multiply", [square, x], outs[0])


class Guest:
    """A primitive with its registrations, right by default."""

    def __init__(
        self,
        *,
        infer: Callable[..., Any] = cubed,
        kernel: Callable[..., Any] | None = right_kernel,
        make: Any = None,
        rule: Any = RIGHT_RULE,
        lowering: Any = None,
        cost: Any = None,
        batching: Any = None,
        pruning: Any = None,
        codec: Any = None,
        metadata: dict[str, Any] | None = None,
        family: bool = True,
        elementwise: bool = False,
    ) -> None:
        def named(*specs: Spec, **params: Any) -> Any:
            return infer(*specs, **params)

        named.__name__, named.__qualname__ = infer.__name__, f"{infer.__name__}_{next(_numbers)}"
        named.__wrapped__ = infer  # type: ignore[attr-defined]
        name = f"guests.{'wave' if family else ''}{next(_numbers)}.v1".replace("guests.wave", "guests.wave_")
        self.primitive = Primitive(named, family=name if family else None, elementwise=elementwise)
        self.op = self.primitive.op(**metadata or {})
        REGISTRY.kernel(self.primitive, "cpu", make or (lambda ins, outs, **_: kernel))
        for table, entry in (("rule", rule), ("lowering", lowering), ("cost", cost), ("batching", batching)):
            if entry is not None:
                getattr(REGISTRY, table)(self.primitive, entry)
        if pruning is not None:
            REGISTRY.pruning(self.primitive, pruning)
        if codec is not None:
            REGISTRY.codec(self.primitive, *codec)


def test_a_right_primitive_passes_every_check() -> None:
    guest = Guest(
        lowering=lowered, cost=lambda ins, outs: Cost(2 * ins[0].size), codec=(lambda p: dict(p), lambda p: dict(p))
    )
    report = check_primitive(guest.op, X, executor=XlaExecutor().run)
    assert [f.check for f in report.findings if f.outcome == "left out"] == ["expansion", "pruning"], report
    assert not report.failed and re.search(r"^derivatives +passed$", repr(report), re.MULTILINE)


def shrinking(x: Spec, *, by: int) -> Spec:
    """Inference that looks at numbers."""
    return x.with_(shape=(x.shape[0], len(range(x.shape[1]))))  # type: ignore[arg-type]


def off_by_one(x: Spec) -> Spec:
    """Inference that is wrong of symbolic sizes."""
    return x if not x.symbolic else x.with_(shape=(x.shape[0] + 1, x.shape[1]))


def both(x: Spec) -> tuple[Spec, Spec]:
    """The operand, and its negative."""
    return x, x


class Unread:
    """Metadata without a form in files."""


def shifted(x: Spec, *, by: Any) -> Spec:
    """Metadata of any kind."""
    return x


def any_size(ins: Any, outs: Any) -> Any:
    n = ins[0].shape[0] if not ins[0].symbolic else 3
    return lambda x: x * x * x if len(x) == n else x


any_size.any_size = True  # type: ignore[attr-defined]


def random(x: Any) -> Any:
    return x + RNG.normal(size=x.shape).astype(x.dtype)


def in_place(x: Any) -> Any:
    x *= 1.5
    return x * x * x


def behind_the_back(x: Any) -> Any:
    """Writes to memory that NumPy protects, as code in C can."""
    if x.size:
        ctypes.memset(x.ctypes.data, 0, 1)
        ctypes.memset(x.ctypes.data + x.itemsize - 1, 0, 1)
    return np.ones_like(x)


def refusing_strides(x: Any) -> Any:
    if not x.flags.c_contiguous:
        raise ValueError("contiguous arrays only")
    return x * x * x


_memory: dict[Any, Any] = {}


def shared(x: Any) -> Any:
    out = _memory.setdefault((x.shape, x.dtype), np.empty(x.shape, x.dtype))
    out[...] = x * x * x
    return out


def reads_memory(x: Any) -> Any:
    flat = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,)) if x.flags.owndata else x.ravel("K")
    return (flat**3).reshape(x.shape)


def rule(slope: Callable[[Any], Any], back: Callable[[Any], Any] | None = None) -> General:
    return General(
        jvp=lambda primals, tangents, outs: (slope(primals[0]) * tangents[0],),
        vjp=lambda primals, outs, cotangents: (cotangents[0] * tr.conj((back or slope)(primals[0])),),
    )


def opaque(x: Any) -> Any:
    return 3.0 * tr.stop_gradient(x * x)


def branching(x: Any) -> Any:
    return 3.0 * x * x if tr.sum(tr.real(x)) > 0 else x


CHECKS = ["results", "operands unchanged", "repeatable", "layouts", "sizes", "empty", "dtypes", "modes", "batches",
          "derivatives", "files", "expansion", "pruning", "costs", "lowering"]  # fmt: skip

PLANTED: dict[str, tuple[dict[str, Any], str, str]] = {
    "shape": ({"kernel": lambda x: x[:1] ** 3}, "results", r"returned float64\[1, 4\], but its inference says"),
    "dtype": ({"kernel": lambda x: (x**3).astype(np.float32)}, "results", r"returned float32\[3, 4\], but its inf"),
    "class": ({"kernel": lambda x: (x**3).tolist()}, "results", "returned list, but its inference says"),
    "mutation": ({"kernel": in_place}, "operands unchanged", "writes to its operand x, which other ten"),
    "mutation in C": ({"kernel": behind_the_back}, "operands unchanged", "writes to its operand x, which other ten"),
    "chance": ({"kernel": random}, "repeatable", "two calls with the same operands return different results"),
    "one buffer": ({"kernel": shared}, "repeatable", "a later call changes the result of an earlier one"),
    "strides refused": ({"kernel": refusing_strides}, "layouts", r"reversed operands make .* raise ValueError \(cont"),
    "order of memory": ({"kernel": reads_memory}, "layouts", "column-major operands lead to other results than contig"),
    "symbolic sizes": ({"infer": shrinking, "metadata": {"by": 1}}, "sizes", "compare symbolic sizes by ask and"),
    "wrong symbolic": ({"infer": off_by_one}, "sizes", r"is float64\[4, 4\] here, but float64\[3, 4\] for numbers"),
    "empty": ({"kernel": lambda x: x**3 + 0 * np.max(x)}, "empty", r"\(0, 4\) raise ValueError .*; return an empty"),
    "precision": ({"kernel": lambda x: x**3 * x.dtype.type(1.01) if x.dtype == "f4" else x**3}, "dtypes",
                  "float32 operands lead to other numbers than float64 ones; correct the kernel"),
    "single is double": ({"kernel": lambda x: np.asarray(x, "D" if x.dtype.kind == "c" else "d") ** 3}, "dtypes",
                         r"float32: the kernel of cubed returned float64\[3, 4\], but its inference says float32"),
    "complex refused": ({"kernel": lambda x: np.float_power(x, 3.0) if x.dtype.kind == "f" else [][0]}, "dtypes",
                        "complex64 operands raise IndexError .* though the inference admits them"),
    "marked": ({"make": any_size}, "modes", "a kernel maker that reads extents must not be marked by sized or any"),
    "lanes mixed": ({"batching": lambda size, values, batched: values[0][::-1] ** 3}, "batches",
                    r"in_axes=\(0,\) \(rule\), the op returns other results than alone; correct the rule of .*py:\d+"),
    "one axis further": ({"infer": shifted, "metadata": {"by": 0},
                          "make": lambda ins, outs, by: lambda x: np.flip(x, by),
                          "batching": lambda size, values, batched, by: tr.flip(values[0], axis=by)}, "batches",
                         r"with in_axes=\(0,\) \(rule\), the op returns other results"),
    "batching that raises": ({"batching": lambda size, values, batched: values[3]}, "batches",
                             r"in_axes=\(0,\) \(rule\), the op raises IndexError"),
    "slope": ({"rule": rule(lambda x: 2.0 * x * x)}, "derivatives", "plain, order 1: .* forward mode, output 0 dis"),
    "one side": ({"rule": rule(lambda x: 3.0 * x * x, lambda x: x * x)}, "derivatives", "order 1: .* reverse m"),
    "second order": ({"rule": rule(opaque)}, "derivatives", "plain, order 2: .* disagrees with central dif"),
    "conjugate": ({"rule": rule(lambda x: 3.0 * x * x, lambda x: 3.0 * tr.conj(x * x))}, "derivatives",
                  "complex128: plain, order 1: .* reverse mode"),
    "inactive": ({"rule": Inactive()}, "derivatives", "forward mode, output 0 disagrees with central differences"),
    "raising": ({"rule": rule(lambda x: dict[str, int]()["a"])}, "derivatives", r"order 1: the rule raises KeyError"),
    "branches": ({"rule": rule(branching)}, "derivatives", "float64: [a-z]*, order [12]: a truth value was"),
    "record": ({"rule": Linear(x=lambda g, axis: g)}, "derivatives", "asks for 'axis'; it may ask for g, out, x"),
    "no slopes": ({"rule": Slopes(x=1.0)}, "derivatives", "Slopes is for element-wise primitives"),
    "no codec": ({"infer": shifted, "metadata": {"by": Unread()}}, "files", "register a codec for the primitive"),
    "codec": ({"infer": shifted, "metadata": {"by": 3}, "codec": (lambda p: p, lambda p: {"by": 4})}, "files",
              r"a program with cubed|shifted.* has .*by=4.* correct the codec"),
    "raising codec": ({"infer": shifted, "metadata": {"by": 3}, "codec": (lambda p: p, lambda p: p["no"])}, "files",
                          "does not hold a well-formed program: KeyError"),
    "pruning": ({"infer": both, "kernel": lambda x: (x, -x), "rule": None,
                 "pruning": lambda op, used: (catalog.abs.op(), (None, 0) if used[1] else (0, None))}, "pruning",
                "with only output 1 used, the op becomes abs, whose results differ"),
    "cost": ({"cost": lambda ins, outs: 3}, "costs", "the cost model returned 3; return a Cost"),
    "cost of sizes": ({"cost": lambda ins, outs: Cost(1 if ins[0].symbolic else 2)}, "costs", "the cost for symbolic"),
    "lowering": ({"lowering": lambda e, operands, outs: operands[0]}, "lowering", "output 0 of the lowering differs"),
    "lowering that raises": ({"lowering": lambda e, operands, outs: operands[7]}, "lowering", "the lowering raises I"),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_mistake_is_found(planted: str) -> None:
    options, check, text = PLANTED[planted]
    guest = Guest(**options)
    executor = XlaExecutor().run if "lowering" in planted else None
    with pytest.raises(CheckError) as caught:
        check_primitive(guest.op, X, executor=executor, skip=[name for name in CHECKS if name != check])
    (found,) = [f for f in caught.value.report.findings if f.check == check]
    assert found.outcome == "failed" and re.search(text, "\n".join(found.mistakes)), found
    assert f"  {check}: {found.mistakes[0]}" in str(caught.value)


def test_all_mistakes_are_listed_at_once() -> None:
    guest = Guest(kernel=lambda x: x**3 + 0 * np.max(x), rule=rule(lambda x: x), cost=lambda ins, outs: None)
    text = r"cubed failed 3 of 16 checks of check_primitive:\n  empty: .*\n(.*\n)*  derivatives: .*\n  costs: the co"
    with pytest.raises(CheckError, match=text):
        check_primitive(guest.op, X)
    report = check_primitive(Guest(cost=lambda ins, outs: None).op, X, skip=["costs"])
    assert "skipped on request" in repr(report)


def two(x: Spec, y: Spec) -> tuple[Spec, Spec]:
    """Squares of one operand, and products of both."""
    if x != y or not x.inexact:
        raise DTypeError(f"two takes floating-point numbers, got {x!r}, {y!r}")
    return x, x


def test_a_rule_that_forgets_none_is_found() -> None:
    forgetful = General(jvp=lambda x, t, outs: (2 * x[0] * t[0], x[0] * t[1] + x[1] * t[0]))
    guest = Guest(infer=two, kernel=lambda x, y: (x * x, x * y), rule=forgetful)
    with pytest.raises(CheckError, match=r"derivatives: by x alone, the rule raises TypeError.*None means zero"):
        check_primitive(guest.op, X, X + 1, skip=[name for name in CHECKS if name != "derivatives"])


def test_what_does_not_apply_is_left_out_with_the_reason() -> None:
    report = check_primitive(Guest(rule=None, family=False, lowering=lowered).op, X)
    reasons = {f.check: f.left_out for f in report.findings if f.left_out}
    assert reasons["derivatives"].startswith("cubed cannot be differentiated: no derivative rule is registered")
    assert "no family id" in reasons["files"] and "pass executor=tenferro_xla.XlaExecutor().run" in reasons["lowering"]
    report = check_primitive(catalog.is_finite, X)
    assert "no operand or no result" in {f.check: f.left_out for f in report.findings}["derivatives"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: check_primitive(np.sin, X), "check_primitive takes a primitive, or an op of one, got <ufunc 'sin'>"),  # type: ignore[arg-type]
        (
            lambda: check_primitive(catalog.tanh, X, skip=["nothing"]),
            "has no check nothing; it has operands unchanged, res",
        ),
        (
            lambda: check_primitive(catalog.tanh, [True]),
            "the operands are not an example of tanh, since its inference ref",
        ),
        (lambda: check_primitive(catalog.reverse, X), "reverse needs the keyword argument axes"),
    ],
)
def test_mistakes_in_the_call_are_typed(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


def square(n: int) -> Any:
    return tr.asarray(RNG.normal(size=(n, n)) + 4 * np.eye(n))


HOUSE = {
    "mul": lambda: (catalog.mul, X, X),
    "exp": lambda: (catalog.exp, 0.5),
    "transpose": lambda: (catalog.transpose.op(permutation=(1, 0)), X),
    "reverse": lambda: (catalog.reverse.op(axes=(1,)), X),
    "inv": lambda: (op_of(inv, square(3)), square(3)),
    "svdvals": lambda: (op_of(svdvals, X), X),
    "rfft": lambda: (op_of(lambda x: rfft(x, axis=0), X), X),
}


def op_of(f: Any, *operands: Any) -> Any:
    """The op of a family that a function uses."""
    return next(eq.op for eq in tr.trace(f, *operands).equations if eq.op.primitive.family)


@pytest.mark.parametrize("name", HOUSE)
def test_primitives_of_the_house_pass(name: str) -> None:
    op, *operands = HOUSE[name]()
    check_primitive(op, *operands, executor=XlaExecutor().run)


def test_a_kernel_for_all_sizes_passes() -> None:
    @sized(lambda ins, outs: (ins[0].shape[0],))
    def make(ins: Any, outs: Any) -> Any:
        return lambda x, n: x * x * x + (len(x) - n)

    check_primitive(Guest(make=make).op, X)
