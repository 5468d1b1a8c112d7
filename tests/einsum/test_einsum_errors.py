"""What a user reads after a mistake: the operand, the label and the position are named."""

import re

import numpy as np
import pytest

from tenferro_einsum import einsum, tensordot
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError

x, y = np.ones((2, 3)), np.ones((4, 5))

MISTAKES = [
    (lambda: einsum("ij,jk->ik", x, y), ShapeError,
     "label 'j' has extent 3 on axis 1 of operand 0 but 4 on axis 0 of operand 1"),
    (lambda: einsum("ijk->i", x), ShapeError, "operand 0 has 2 axes but its term 'ijk' has 3 label(s)"),
    (lambda: einsum("i->i", x), ShapeError, "add '...' for the others"),
    (lambda: einsum("ij->iq", x), ArgumentError, "output label 'q' is on no operand"),
    (lambda: einsum("ij,jk->ik", x), ArgumentError, "2 term(s) for 1 operand(s)"),
    (lambda: einsum("ij->i->j", x), ArgumentError, "one '->'"),
    (lambda: einsum("(ij)->i", x), ArgumentError, "write the contraction order as optimize="),
    (lambda: einsum("i..j->i", x), ArgumentError, "exactly three dots"),
    (lambda: einsum("......", x), ArgumentError, "one ellipsis of exactly three dots"),
    (lambda: einsum("...j->j", x), ArgumentError, "add '...' to the output"),
    (lambda: einsum("ij->i,j", x), ArgumentError, "the output is one term"),
    (lambda: einsum(), ArgumentError, "needs subscripts and operands"),
    (lambda: einsum("ij->i"), ArgumentError, "1 term(s) for 0 operand(s)"),
    (lambda: einsum(x, "ij"), ArgumentError, "operand 0 must be followed by a list of its labels, not by a str"),
    (lambda: einsum("ij->i", "no tensor"), ArgumentError, "an operand is a str, not a tensor"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize="best"), ArgumentError, "optimize='best' is no strategy"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=[(0, 3), (0, 1)]), ArgumentError,
     "step 0 of the path is (0, 3), but positions must be distinct and below 3"),
    (lambda: einsum("ij,jk,kl->il", x, x.T, x, optimize=[(0, 1)]), ArgumentError, "leaves 2 operands of 3"),
    (lambda: tensordot(x, y, axes=3), AxisError, "cannot contract 3 axes of operands with 2 and 2 axes"),
    (lambda: tensordot(x, y, axes=([0], [0, 1])), AxisError, "1 axes of x are paired with 2 of y"),
    (lambda: tensordot(x, y, axes=([5], [0])), AxisError, "axes of x must be distinct and within 2 axes"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), MISTAKES)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        call()
