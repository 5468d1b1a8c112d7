"""Equal constants are one, wherever they stand, and so is everything that follows from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.extension import check_program
from tenferro_runtime.ir import inner_programs
from tenferro_runtime.ir._structure import DIGEST_MAX_BYTES, VALUE_KEY_MAX_BYTES
from tenferro_runtime.passes import PASSES, keeping_bits, share_common_subexpressions
from tenferro_runtime.passes.common_subexpressions import share_constants
from tenferro_tensor import Spec, tensor

F8 = np.dtype("float64")
X = Spec((8,), F8)


def optimised(program):
    for run in keeping_bits(PASSES):
        program = check_program(run(program))
    return program


def work(program):
    """Number of equations and of constants, those of inner programs included."""
    inner = [work(p) for eq in program.equations for p in inner_programs(eq.op.params)]
    return (
        len(program.equations) + sum(n for n, _ in inner),
        len(program.constants) + sum(k for _, k in inner),
    )


MADE = {
    "arange": lambda: tr.arange(8.0),
    "integers": lambda: tr.astype(tr.arange(8), tr.float64),
    "asarray": lambda: tr.asarray([3.0, 1, 4, 1, 5, 9, 2, 6]),
    "linspace": lambda: tr.linspace(0, 1, 8),
    "full": lambda: tr.full(8, 2.5),
    "NumPy": lambda: np.arange(8.0) ** 2,
    "matrix": lambda: (tr.eye(8) + 1)[2],
    "complex": lambda: tr.real(tr.arange(8) * (1 + 2j)),
}
AROUND = {
    "in a row": lambda half, x: half(x) * half(x),
    "inlined calls": lambda half, x: tr.compile(lambda y: half(y))(x) * tr.compile(lambda y: half(y))(x),
    "a loop's body": lambda half, x: tr.scan(lambda c, _: (half(c) * half(c) / 9, None), x, None, length=3)[0],
    "a branch": lambda half, x: tr.cond(x[0] > 0, lambda x: half(x) * half(x), lambda x: half(x) + half(x), x),
    "a while loop": lambda half, x: tr.while_loop(lambda c: c[0] > 2, lambda c: half(c) * half(c) / 99, x),
    "a gradient": lambda half, x: grad(lambda x: tr.sum(half(x) * half(x)))(x),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("made", MADE)
def test_what_follows_from_equal_constants_is_done_once(around, made):
    """The program is no longer than that of a function that makes the constant once."""
    make = MADE[made]
    once = make()

    def program(constant):
        return tr.trace(lambda x: AROUND[around](lambda y: tr.sin(y + constant()) * 3 + constant(), x), X)

    apart, together = program(make), program(lambda: once)
    assert work(optimised(apart)) == work(optimised(together))
    x = np.linspace(-1, 2, 8)
    np.testing.assert_array_equal(optimised(apart).run(x)[0].numpy(), apart.run(x)[0].numpy())


def test_shared_constants_leave_no_trace():
    shared = optimised(tr.trace(lambda x: tr.sin(x * tr.arange(8)) - tr.sin(x * tr.arange(8)), X))
    assert work(shared) == (3, 1)


BITS = [0.0, -0.0, 1.0, np.nan, -np.nan, np.inf, 5e-324]
DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float32", "float64", "complex64", "complex128"]


@st.composite
def arrays(draw):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.sampled_from([(), (1,), (2,), (2, 2), (1, 2), (0,)]))
    values = [draw(st.sampled_from(BITS)) if dtype.kind in "fc" else draw(st.integers(0, 1)) for _ in range(4)]
    array = np.array(values[: int(np.prod(shape))]).astype(dtype).reshape(shape)
    return array.T.copy().T if draw(st.booleans()) else array


@given(st.lists(arrays(), min_size=2, max_size=6))
def test_constants_are_one_where_every_bit_is_the_same(found):
    """Zeros of two signs, not-a-numbers of two payloads, ``True`` and 1: each is itself."""
    program = tr.trace(lambda x: [x, *[tensor(a) for a in found]], X)
    shared = share_common_subexpressions(program)
    keys = [(a.dtype, a.shape, tensor(a).data.strides, a.tobytes()) for a in found]
    assert len(set(shared.output_ids[1:])) == len(shared.constants) == len(set(keys))
    assert share_common_subexpressions(shared) is shared
    for a, b in zip(shared.run(np.zeros(8))[1:], found, strict=True):
        assert a.numpy().tobytes() == b.tobytes() and a.dtype == b.dtype and a.shape == b.shape


@pytest.mark.parametrize(
    "nbytes",
    [8, VALUE_KEY_MAX_BYTES, VALUE_KEY_MAX_BYTES + 8, DIGEST_MAX_BYTES, DIGEST_MAX_BYTES + 8, 4 * DIGEST_MAX_BYTES],
)
def test_constants_of_every_size_are_compared(nbytes):
    a = np.random.default_rng(0).normal(size=nbytes // 8)
    other = a.copy()
    other[-1] = np.nextafter(other[-1], 9)
    made = [tensor(v) for v in (a, a.copy(), other)]
    program = tr.trace(lambda x: [x[0] * v for v in made], X)
    first, second, third = share_common_subexpressions(program).output_ids
    assert first == second != third


def test_a_layout_is_part_of_a_constant():
    """Kernels may round by it."""
    a = np.random.default_rng(0).normal(size=(30, 30))
    program = tr.trace(lambda x: (x[0] * tensor(a), x[0] * tensor(np.asfortranarray(a))), X)
    assert len(set(share_common_subexpressions(program).output_ids)) == 2


def test_equal_constants_alone_become_one_and_equations_stay() -> None:
    program = tr.trace(lambda x: (x + MADE["linspace"]()) * (x - MADE["linspace"]()), X)
    assert len(program.constants) == 2
    less = check_program(share_constants(program))
    assert len(less.constants) == 1 and len(less.equations) == len(program.equations)
    assert share_constants(less) is less
    x = np.arange(8.0)
    np.testing.assert_array_equal(less.run(x)[0].numpy(), program.run(x)[0].numpy())
