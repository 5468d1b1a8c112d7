"""An operation that calls a solver, a Python function, on concrete values when a program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ad._modes import no_grad
from tenferro_ad.implicit._values import plain
from tenferro_runtime.extension import REGISTRY, Primitive, Program
from tenferro_runtime.ir import instance, open_sizes
from tenferro_runtime.tracing import staged
from tenferro_tensor import Op, Spec, Tensor
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import DimLike, GradientError

Function = Callable[[Program, list[Any], Sequence[Spec]], Sequence[Any]]
"""``function(program, operands, specs)``: the program, all operands and the specs of the results, to leaves."""


def _infer(
    *xs: Spec, program: Program, function: Function, results: int, sizes: tuple[DimLike, ...]
) -> tuple[Spec, ...]:
    """Call ``function(program, operands, specs)``; the results have the specs of the last `results` operands.

    The program has its own sizes, as in ``call``, so passes leave it alone: it is still to be differentiated.
    """
    return xs[len(xs) - results :]


class _Hosted(Primitive):
    """Its ops are not interned, since a table of ops would keep the closures of functions alive."""

    anywhere = True

    def op(self, **params: Any) -> Op:
        return Op(self, params)


_infer.__name__ = "hosted_solver"
hosted_solver = _Hosted(_infer)


def hosted(function: Function, program: Program, specs: Sequence[Spec], results: int) -> Program:
    """The program of a single equation that calls a function.

    Args:
        function: the function.
        program: its first argument.
        specs: specs of the operands.
        results: number of leaves that it returns, with the specs of the last operands.
    """
    op = hosted_solver.op(program=program, function=function, results=results, sizes=open_sizes(program))
    return staged(op, specs).program


def _make_kernel(
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    *,
    program: Program,
    function: Function,
    results: int,
    sizes: tuple[DimLike, ...],
) -> Callable[..., Any]:
    known = instance(program, sizes) if sizes else program

    def run(*raws: Any) -> Any:
        with no_grad():
            found = function(known, [Tensor.wrap(raw, spec) for raw, spec in zip(raws, ins, strict=True)], outs)
        return tuple([_raw(x) for x in found])

    return run


def _raw(x: Any) -> Any:
    x = plain(x)
    if x.__class__ is not Tensor:
        raise GradientError(
            f"a solver that runs on concrete values returned {x.spec!r} of class {type(x).__name__}; it must not close "
            "over traced values: pass them through the equation",
            spec=repr(x.spec),
        )
    return owned(x)._data


REGISTRY.kernel(hosted_solver, "*", _make_kernel)
