"""Numbers, sizes, indices and applications of ops as C expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_gpu.rendering._functions import function_of, literal, rendered
from tenferro_tensor import Op
from tenferro_tensor.loop_ir import INDEX, Affine, Literal, Reg, Value, expansion
from tenferro_tensor_core import Dim, DimLike, UnsupportedError

INDEX_TYPE: Final = "long long"
"""C type of indices and sizes."""

Define = Callable[[np.dtype[Any], str], str]
"""Assigns an expression to a new name."""


def applied(op: Op, operands: Sequence[np.dtype[Any] | Literal], args: Sequence[str], define: Define) -> str:
    """An application of an element-wise op, decomposed into simpler ones if the library has no function for it.

    Args:
        op: the op.
        operands: the dtype of each operand, or the number if it is a literal.
        args: the operands.
        define: names intermediate results.

    Raises:
        UnsupportedError: it has no form in a kernel.
    """
    dtypes = tuple([o.dtype if isinstance(o, Literal) else o for o in operands])
    if rendered(op.primitive, dtypes):
        return f"{function_of(op)}({', '.join(args)})"
    simpler = expansion(op, *operands)
    if simpler is None:
        names = ", ".join([d.name for d in dtypes])
        raise UnsupportedError(
            f"{op!r} of {names} has no form in a kernel of a GPU; end the kernel before it and run it on CuPy",
            primitive=op.primitive.name,
            dtypes=names,
        )
    values = {reg.number: text for reg, text in zip(simpler.args, args, strict=True)}

    def value(of: Value) -> str:
        return literal(of) if isinstance(of, Literal) else values[of.number]

    for s in simpler.body:
        inner = [a if isinstance(a, Literal) else a.dtype for a in s.args]
        values[s.result.number] = define(s.result.dtype, applied(s.op, inner, [value(a) for a in s.args], define))
    return value(simpler.result)


class Expressions:
    """C expressions of one kernel.

    Args:
        sizes: names of the symbolic sizes; in C they are ``n0``, ``n1`` and so on.
        unread: indices of registers that nothing reads, such as the last carry of a loop; they are not written.

    >>> from tenferro_tensor_core import dim
    >>> n, i = dim("n"), Reg(3, INDEX)
    >>> Expressions(("m", "n")).place(Affine(n - 1) + Affine.of(i) * n)
    '-1 + n1 + r3 * n1'
    """

    def __init__(self, sizes: Sequence[str], unread: frozenset[int] = frozenset()) -> None:
        self.unread = unread
        self._names = {name: f"n{k}" for k, name in enumerate(sizes)}

    def size(self, size: DimLike) -> str:
        """A sum of products."""
        if not isinstance(size, Dim):
            return str(int(size))
        terms = []
        for monomial, by in sorted(size.terms, key=lambda term: len(term[0])):
            factors = [self._atom(atom) for atom in monomial]
            terms.append(" * ".join(([] if by == 1 and factors else [str(int(by))]) + factors))
        return " + ".join(terms)

    def _atom(self, atom: Any) -> str:
        if atom.kind == "var":
            return self._names[atom.name]
        first, *rest = [f"({INDEX_TYPE})({self.size(d)})" for d in atom.args]
        function = "tf_floor_divide" if atom.kind == "floordiv" else f"tf_{atom.kind}imum"
        for other in rest:
            first = f"{function}({first}, {other})"
        return first

    def factor(self, size: DimLike) -> str:
        """A size as a factor of a product."""
        text = self.size(size)
        return f"({text})" if " " in text or text.startswith("-") else text

    def place(self, at: Affine) -> str:
        """An index into memory."""
        terms = [] if at.terms and at.constant.__class__ is int and at.constant == 0 else [self.size(at.constant)]
        for reg, by in at.terms:
            terms.append(index(reg) if by.__class__ is int and by == 1 else f"{index(reg)} * {self.factor(by)}")
        return " + ".join(terms)

    def position(self, at: Affine) -> str:
        """An index as a number, which wraps."""
        total = f"({INDEX_TYPE})({self.size(at.constant)})"
        for reg, by in at.terms:
            term = f"({INDEX_TYPE}){index(reg)}"
            if by.__class__ is not int or by != 1:
                term = f"tf_mul({term}, ({INDEX_TYPE})({self.size(by)}))"
            total = f"tf_add({total}, {term})"
        return total

    def value(self, value: Value) -> str:
        """A register or a number."""
        return literal(value) if isinstance(value, Literal) else f"r{value.number}"


def index(reg: Reg) -> str:
    """A register as an index."""
    return f"r{reg.number}" if reg.dtype == INDEX else f"({INDEX_TYPE})r{reg.number}"
