"""What a user reads after a mistake: the operand, the label and the position are named."""

import pickle
import re

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tenferro_einsum import einsum, inner, plan, tensordot
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError, UnsupportedError

x, y, z = np.ones((2, 3)), np.ones((4, 5)), np.ones((3, 4))
ONES = np.ones((2, 2))
SQUARE = tensor(ONES)
PLAN = plan("ij,jk->ik", x, z)
SWAPPED = np.dtype("float64").newbyteorder()


def range_of(first):
    return list(range(first, first + 40))


MISTAKES = [
    (lambda: einsum("ij,jk->ik", x, y), ShapeError,
     "label 'j' has extent 3 on axis 1 of operand 0 but 4 on axis 0 of operand 1"),
    (lambda: einsum("ijk->i", x), ShapeError, "operand 0 has 2 axes but its term 'ijk' has 3 label(s)"),
    (lambda: einsum("i->i", x), ShapeError, "add '...' for the others"),
    (lambda: einsum("ij->iq", x), ArgumentError, "output label 'q' is on no operand"),
    (lambda: einsum("ij,jk->ik", x), ArgumentError, "2 term(s) for 1 operand(s)"),
    (lambda: einsum("ij->i->j", x), ArgumentError, "one '->'"),
    (lambda: einsum("i(j)->i", x), ArgumentError, "'(' at position 1 stands inside of a term"),
    (lambda: einsum("(ij)k->i", x), ArgumentError, "'k' at position 4 follows ')' without ','"),
    (lambda: einsum("ij),jk->i", x, x), ArgumentError, "')' at position 2 closes nothing"),
    (lambda: einsum("((ij,jk)->i", x, x), ArgumentError, "'(' at position 0 is not closed"),
    (lambda: einsum("ij,jk->(ik)", x, y), ArgumentError, "before '->', parentheses around terms"),
    (lambda: einsum("(ij,jk),kl->il", x, z, z.T, optimize=[(0, 1), (0, 1)]), ArgumentError, "defined twice"),
    (lambda: einsum(x, [[0], 1]), ArgumentError, "labels must be hashable, but label [0] of operand 0 is not"),
    (lambda: einsum(x, [0, 1], [1, {}]), ArgumentError, "label {} of the output"),
    (lambda: einsum(np.ones((1,) * 40), range_of(0), np.ones((1,) * 40), range_of(40), range_of(0) + range_of(40)),
     UnsupportedError, "the result has 80 axes, but arrays have 64 at most"),
    (lambda: einsum("ij,jk,kl->il", x, x, x, optimize="dp", time_limit=1), ArgumentError,
     "a time limit needs a search that can be stopped"),
    (lambda: einsum("ij,jk,kl->il", x, x, x, time_limit=0), ArgumentError, "a positive number of seconds, got 0"),
    (lambda: einsum("i..j->i", x), ArgumentError, "exactly three dots"),
    (lambda: einsum("......", x), ArgumentError, "one ellipsis of exactly three dots"),
    (lambda: einsum("...j->j", x), ArgumentError, "add '...' to the output"),
    (lambda: einsum("ij->i,j", x), ArgumentError, "the output is one term"),
    (lambda: einsum(), ArgumentError, "needs subscripts and operands"),
    (lambda: einsum("ij->i"), ArgumentError, "1 term(s) for 0 operand(s)"),
    (lambda: einsum(x, "ij"), ArgumentError, "operand 0 must be followed by a list of its labels, not by a str"),
    (lambda: einsum("ij->i", "no tensor"), ArgumentError, "operand 0 is a str, not a tensor"),
    (lambda: einsum("ij,j->i", x, [1.0, 2.0, 3.0]), ArgumentError, "operand 1 is a list, not a tensor"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize="best"), ArgumentError, "optimize='best' is unknown"),
    (lambda: einsum("ij,jk->ik", x, z, optimize="least"), ArgumentError, "optimize='least' is unknown"),
    (lambda: plan("ij,jk->ik", x, z, optimize="worst"), ArgumentError, "optimize='worst' is unknown"),
    (lambda: einsum("(ij,jk),kl->il", x, z, y, optimize="good"), ArgumentError, "optimize='good' is unknown"),
    (lambda: einsum("ij->ji", x, optimize="one"), ArgumentError, "optimize='one' is unknown"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=[(0, 3), (0, 1)]), ArgumentError,
     "step 0 of the path is (0, 3), but positions must be distinct and below 3"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=[(0, 1)]), ArgumentError, "leaves 2 operands of 3"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=[(0.0, 1), (0, 1)]), ArgumentError, "position tuples"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=((), 0, 1, 2)), ArgumentError, "got ((), 0, 1, 2)"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize={}), ArgumentError, "an optimizer, got {}"),
    (lambda: einsum("ij,jk->ik", SQUARE, SQUARE, optimize=np.array([[0, 1]])), ArgumentError, "optimizer, got array"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=lambda *given: [(0, 7)]), ArgumentError, "is (0, 7)"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=lambda *given: None), ArgumentError, "got None"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, progress="yes"), ArgumentError, "progress as a bool or a function"),  # type: ignore[arg-type]
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, time_limit=float("inf")), ArgumentError, "number of seconds, got inf"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, memory_budget=1e9), ArgumentError, "number of bytes, got 1000000000.0"),  # type: ignore[arg-type]
    (lambda: tensordot(x, y, axes=3), ArgumentError, "tensordot cannot pair 3 axes of float64[2, 3]"),
    (lambda: tensordot(x, y, axes=([0], [0, 1])), ArgumentError, "pairs 1 axes of x with 2 of y"),
    (lambda: tensordot(x, y, axes=([5], [0])), AxisError, "tensordot"),
    (lambda: inner(x, y), ShapeError, "cannot contract axis 1"),
    (lambda: PLAN(x, x), ShapeError, "the plan was made for float64[3, 4] as operand 1, got float64[2, 3]"),
    (lambda: PLAN(x), ShapeError, "the plan was made for 2 operands, got 1; pass one for each term"),
    (lambda: PLAN(x, z, out=x), ShapeError, "out= is float64[2, 3], but the result is float64[2, 4]"),
    (lambda: PLAN(x, z, out=np.zeros((2, 4), SWAPPED)), ShapeError, "out= is byte-swapped float64[2, 4]"),
    (lambda: PLAN(x, z, out=as_strided(np.zeros(4), (2, 4), (0, 8))), ArgumentError, "share memory with each other"),
    (lambda: PLAN(x, z, out=as_strided(np.zeros(9), (2, 4), (8, 8))), ArgumentError, "elements of out= share memory"),
    (lambda: PLAN(x, z, out=[1.0]), ArgumentError, "takes out= as a NumPy array"),
    (lambda: PLAN(x, z, out=tensor(np.zeros((2, 4)))), ArgumentError, "a tensor, which is immutable; pass np.empty"),
    (lambda: PLAN(x, z, out=np.broadcast_to(0.0, (2, 4))), ArgumentError, "out= is read-only"),
    (lambda: plan("ij,jk->ik", SQUARE, SQUARE)(ONES, SQUARE, out=ONES), ArgumentError, "with operand 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), MISTAKES)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=re.escape(text)) as caught:
        call()
    sent = pickle.loads(pickle.dumps(caught.value))  # workers send what went wrong
    assert (type(sent), str(sent), sent.payload) == (kind, str(caught.value), caught.value.payload)


def test_mistakes_in_the_order_are_named_after_good_calls():
    """Contractions of two that are remembered look at their options all the same."""
    a, b = tensor(x), tensor(z)
    einsum("ij,jk->ik", a, b)
    for options in ({"optimize": [(0, 2)]}, {"optimize": 3}, {"time_limit": 0}, {"memory_budget": 0}):
        with pytest.raises(ArgumentError):
            einsum("ij,jk->ik", a, b, **options)
